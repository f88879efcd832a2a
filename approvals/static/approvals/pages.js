/* Keys, a list that says what is new, and a record that looks for its receipts. Every action here is also a link, button or form.
   Keys can be turned off in the profile (then this file is not loaded), never fire inside a field,
   and above low risk only open a form. */
(() => {
  "use strict";
  const keys = document.getElementById("keys");
  if (keys) keys.hidden = false;

  const items = [...document.querySelectorAll("#list .item")];
  let at = -1;
  const move = by => {
    if (!items.length) return;
    if (at >= 0) items[at].removeAttribute("aria-current");
    at = Math.min(items.length - 1, Math.max(0, at + by));
    items[at].setAttribute("aria-current", "true");
    items[at].querySelector(".t").focus();
    items[at].scrollIntoView({ block: "nearest" });
  };
  const open = id => {
    const answer = document.getElementById(id);
    if (!answer) return;
    answer.open = true;
    answer.querySelector("summary").focus();
    answer.scrollIntoView({ block: "center" });
  };
  const go = hash => { if (at >= 0) location.href = items[at].querySelector(".t").href + hash; };

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.repeat && !"jk".includes(event.key)) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
    const keyed = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (keyed) keyed.click();
    else if (items.length && event.key === "j") move(1);
    else if (items.length && event.key === "k") move(-1);
    else if (items.length && event.key === "o") go("");
    else if (items.length && event.key === "a") go("#decide");
    else if (items.length && event.key === "r") go("#resp-reject");
    else if (event.key === "a") open("resp-approve");
    else if (event.key === "e") open("resp-edit");
    else if (event.key === "c") open("resp-changes");
    else if (event.key === "r") open("resp-reject");
    else return;
    event.preventDefault();
  });
  if (/^#resp-[a-z]+$/.test(location.hash)) open(location.hash.slice(1));

  const fetched = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return null;
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch { return null; /* the next look may reach the service again */ }
  };
  const after = seconds => new Promise(done => setTimeout(done, seconds * 1000));

  /* What comes to wait meanwhile is told by a bar: the list never moves under its reader. */
  const news = document.getElementById("news");
  const named = root => new Map([...root.querySelectorAll("#list .item")].map(
    one => [one.querySelector(".t").getAttribute("href"), one]));
  const tell = (here, there) => {
    const fresh = [...there.keys()].filter(one => !here.has(one)).length;
    if (fresh) {
      const show = document.createElement("a");
      show.className = "btn";
      show.href = location.href;
      show.textContent = `${fresh} new: show`;
      if (news.textContent !== show.textContent) news.replaceChildren(show);
    } else news.replaceChildren();
    const whole = there.size < 50; /* else one may only have moved to the next page */
    for (const [href, item] of here) {
      const when = item.querySelector(".when b");
      if (whole && !there.has(href)) when.textContent = "waits for you no more";
    }
  };
  const lookForNews = async () => {
    for (;;) {
      await after(Number(news.dataset.look));
      const page = document.hidden ? null : await fetched();
      if (page) tell(named(document), named(page));
    }
  };
  if (news) lookForNews();

  /* The record and a dry run that is being taken are looked at again while something is to come. */
  const live = document.getElementById("live");
  const look = async () => {
    const seconds = Number(live.dataset.poll);
    if (!seconds) return;
    await after(seconds);
    const fresh = (await fetched())?.getElementById("live");
    if (fresh && !live.contains(document.activeElement)) {
      live.replaceChildren(...fresh.childNodes);
      if (fresh.dataset.poll) live.dataset.poll = fresh.dataset.poll;
      else delete live.dataset.poll;
    }
    look();
  };
  if (live) look();
})();
