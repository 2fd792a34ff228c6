
(function () {
  var tools = document.getElementById("tools"), filter = document.getElementById("filter");
  var bad = document.getElementById("bad"), count = document.getElementById("count");
  var all = Array.prototype.slice.call(document.querySelectorAll(".exchange"));
  function apply() {
    var words = filter.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
    all.forEach(function (one) {
      var text = words.length ? one.textContent.toLowerCase() : "";
      var fits = (!bad.checked || one.classList.contains("bad")) &&
        words.every(function (word) { return text.indexOf(word) >= 0; });
      one.hidden = !fits;
      if (fits) shown++;
    });
    count.textContent = shown + " of " + all.length + " exchanges";
  }
  tools.hidden = false;
  filter.addEventListener("input", apply);
  bad.addEventListener("change", apply);
  apply();
})();
