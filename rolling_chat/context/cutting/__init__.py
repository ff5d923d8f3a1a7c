"""Cut a text down to its important parts, depending on what kind of text it is."""

from rolling_chat.context.cutting.cut import cut_by_kind
from rolling_chat.context.cutting.notices import describer

__all__ = ["cut_by_kind", "describer"]
