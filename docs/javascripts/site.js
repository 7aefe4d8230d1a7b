// Tables that scroll get the keyboard. The theme wraps them after the page has been loaded.
const focusable = () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    table.tabIndex = 0;
  }
};

new MutationObserver(focusable).observe(document.body, { childList: true, subtree: true });
focusable();
