// Tables and code that scroll get the keyboard. The theme wraps tables after the page has been loaded.
const focusable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset table, pre > code")) {
    if (box.scrollWidth > box.clientWidth || !box.matches("table")) {
      box.tabIndex = 0;
    }
  }
};

new MutationObserver(focusable).observe(document.body, { childList: true, subtree: true });
for (const event of ["load", "resize"]) {
  window.addEventListener(event, focusable);
}
focusable();
