/** The start of the page. */
import { QueryClientProvider } from '@tanstack/preact-query'
import { render } from 'preact'
import { App } from './app.tsx'
import { queries } from './data/queries.ts'
import { applyTheme } from './data/theme.ts'
import './styles/base.css'
import './styles/parts.css'
import './styles/pages.css'
import 'uplot/dist/uPlot.min.css'

applyTheme()
const root = document.getElementById('app')
if (root)
  render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
    root,
  )
