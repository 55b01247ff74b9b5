/** The first script of the page: small, so that the menu that the HTML has is drawn before the rest is run. */
import { applyTheme, storedTheme } from './data/theme-choice.ts'
import './styles/base.css'
import './styles/parts.css'
import './styles/pages.css'
import 'uplot/dist/uPlot.min.css'

/** A browser draws no picture of a page in the background; it starts after this time. */
const PICTURE_MS_MAX = 100

let isStarted = false
function start(): void {
  if (isStarted) return
  isStarted = true
  void import('./start.tsx').then(({ draw }) => draw())
}

applyTheme(storedTheme())
if (document.querySelector('.shell')) {
  requestAnimationFrame(() => setTimeout(start))
  setTimeout(start, PICTURE_MS_MAX)
} else start()
