// Tables and code that scroll get the keyboard. The theme wraps tables after the page has been loaded.
const focusable = () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    table.tabIndex = 0;
  }
  for (const code of document.querySelectorAll("pre > code")) {
    if (code.scrollWidth > code.clientWidth) {
      code.tabIndex = 0;
    }
  }
};

new MutationObserver(focusable).observe(document.body, { childList: true, subtree: true });
focusable();
