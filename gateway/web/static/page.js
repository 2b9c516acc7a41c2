"use strict";
// Tables that the service does not sort are sorted here; pages work without this file.
(function () {
  var collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  function value(row, column) {
    return row.cells[column].textContent.trim().replace(/^\$ ?/, "");
  }
  function sort(table, head, column) {
    var down = head.getAttribute("aria-sort") === "ascending";
    var body = table.tBodies[0];
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      return collator.compare(value(a, column), value(b, column)) * (down ? -1 : 1);
    });
    rows.forEach(function (row) { body.appendChild(row); });
    Array.from(table.tHead.rows[0].cells).forEach(function (one) { one.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  document.querySelectorAll("table").forEach(function (table) {
    if (table.querySelector("th a") || table.tBodies[0].rows.length < 2) { return; }
    Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", function () { sort(table, head, column); });
      head.replaceChildren(button);
    });
  });

  var EVERY = 30000, KEY = "refresh";
  var timer = null;
  function set(on) {
    clearInterval(timer);
    timer = on ? setInterval(function () {
      if (!document.hidden) { location.reload(); }
    }, EVERY) : null;
    try { sessionStorage.setItem(KEY, on ? "1" : ""); } catch (error) { /* only kept for this page */ }
  }
  var before = false;
  try { before = sessionStorage.getItem(KEY) === "1"; } catch (error) { before = false; }
  var label = document.createElement("label"), box = document.createElement("input");
  box.type = "checkbox";
  box.checked = before;
  box.addEventListener("change", function () { set(box.checked); });
  label.append(box, " every 30 s");
  var at = document.querySelector(".at");
  if (at) { at.append(" ", label); set(before); }
})();
