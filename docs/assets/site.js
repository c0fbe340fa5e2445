// What scrolls sideways can be reached by keyboard, and nothing else takes part in tabbing for that.
const parts = ".md-typeset pre > code, .md-typeset__scrollwrap, .picture, .output, p:has(> img)";
const reachable = () => {
  for (const part of document.querySelectorAll(parts)) {
    if (part.scrollWidth > part.clientWidth + 1 || part.scrollHeight > part.clientHeight + 1) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
