// A tab keeps its chat over a reload: its name lives in the tab's own storage.
"use strict";
const tab = sessionStorage.getItem("tab") || crypto.randomUUID();
sessionStorage.setItem("tab", tab);

window.addEventListener("load", async () => {
  const terminal = document.getElementById("terminal");
  terminal.dataset.sessionWebsocketUrl = `ws://${window.location.host}/ws/${tab}`;
  document.getElementById("again").addEventListener("click", () => window.location.reload());
  // keys go to the chat at once, without a click
  new MutationObserver((_changes, observer) => {
    const input = terminal.querySelector("textarea");
    if (input) {
      observer.disconnect();
      input.focus();
    }
  }).observe(terminal, { childList: true, subtree: true });
  // the terminal measures its cells when it begins: the font has to be there
  await Promise.all(["", "bold ", "italic "].map((face) => document.fonts.load(`${face}15px "Roboto Mono"`)));
  const script = document.createElement("script");
  script.src = "/static/js/textual.js";
  script.addEventListener("load", () => window.onload());
  document.body.append(script);
});
