/** Draws the page into its element, in which the HTML may already have the menu. */
import { QueryClientProvider } from '@tanstack/preact-query'
import { render } from 'preact'
import { App } from './app.tsx'
import { followNotifications } from './data/notifications.ts'
import { queries } from './data/queries.ts'
import { followTheme } from './data/theme.ts'

export function draw(): void {
  followTheme()
  followNotifications()
  const root = document.getElementById('app')
  if (root)
    render(
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>,
      root,
    )
}
