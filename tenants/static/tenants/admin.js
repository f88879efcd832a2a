/* Names for what the admin's scripts draw without one, for those who hear the page. */
(() => {
  "use strict";
  const name = () => {
    /* Each box that scrolls is a region; several of one name can't be told apart. */
    for (const [number, box] of document.querySelectorAll(".simplebar-content-wrapper").entries()) {
      const list = box.querySelector("#result_list");
      box.setAttribute("aria-label", list ? "The list" : `Scrolls, ${number + 1}`);
    }
    for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
      const label = document.querySelector(`label[for="${CSS.escape(select.id)}"]`);
      const drawn = select.nextElementSibling;
      if (!label || !drawn) continue;
      const said = label.textContent.trim();
      for (const one of drawn.querySelectorAll(".select2-selection, .select2-search__field")) {
        one.setAttribute("aria-label", said);
        one.removeAttribute("aria-labelledby");
      }
      for (const one of drawn.querySelectorAll("span.select2-selection__rendered")) {
        one.setAttribute("aria-label", `${said}: ${one.textContent.trim() || "nothing chosen"}`);
      }
    }
  };
  /* They are drawn at any time, also after the page has loaded; to name them adds no node. */
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
  name();
})();
