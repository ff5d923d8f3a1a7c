"""The Textual driver of a chat in a browser: pages can reconnect, and it reports the open session."""

from __future__ import annotations

from textual.drivers.web_driver import WebDriver

DRIVER = f"{__name__}:BrowserDriver"
"""The value of TEXTUAL_DRIVER that selects it."""


class BrowserDriver(WebDriver):
    """Textual's driver for a browser, to which a page can be attached again and again.

    It sends the packet `{"type": "session", "id": …}` whenever the open session changes; the id is empty
    until something of the session is saved.
    """

    _session_sent = ""

    def write(self, data: str) -> None:
        """Write to the page; first report the open session if it changed."""
        session = str(getattr(self._app, "saved_session", ""))
        if session != self._session_sent:
            self._session_sent = session
            self.write_meta({"type": "session", "id": session})
        super().write(data)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Redraw everything for a page that was attached; leave all other packets to Textual."""
        if packet_type == "attach":
            self._loop.call_soon_threadsafe(self._show_again)
        else:
            super().on_meta(packet_type, payload)

    def _show_again(self) -> None:
        self.write("\x1b[?1049h\x1b[?25l")  # the alternate screen, without a cursor
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._app.refresh(layout=True)
