"""Compositing a screen from its widgets, limited to the part that changed."""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class CroppedCompositor(Compositor):
    """A compositor that draws only the rows that an update needs.

    Textual's own draws every widget of the screen completely for any change, even for one streamed row.
    """

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Yield the widgets in `crop`, front to back: region, drawn part of the region, and rows."""
        if crop is None:
            yield from super()._get_renders()
            return
        rows = Region(0, crop.y, self.size.width, crop.height)
        for widget, (region, clip) in self.visible_widgets.items():
            drawn = region.intersection(clip).intersection(rows)
            if drawn and drawn.overlaps(crop):
                yield region, drawn, widget.render_lines(drawn.translate(-region.offset))
