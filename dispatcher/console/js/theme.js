/** Sets the chosen theme before the first paint. A classic script, so that it blocks rendering. */
(() => {
  try {
    const theme = localStorage.getItem('stepfleet.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be blocked; the system's theme is used then.
  }
})();
