/* Light or dark: as the system has it, until the button says otherwise. */

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => (byId("theme").textContent = isDark() ? "Light" : "Dark");

function startTheme() {
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  prefersDark.addEventListener("change", nameTheme);
  nameTheme();
}
