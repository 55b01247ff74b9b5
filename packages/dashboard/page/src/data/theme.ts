/** Dark or light: as the system prefers, or as chosen with the switch. */
import { effect, signal } from '@preact/signals'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]
const KEY = 'sluice.theme'

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return THEMES.find((theme) => theme === value) ?? 'system'
  } catch {
    return 'system'
  }
}

export const theme = signal<Theme>('system')

/** Applies the stored choice, and each later one. */
export function applyTheme(): void {
  theme.value = stored()
  effect(() => {
    document.documentElement.style.colorScheme = theme.value === 'system' ? 'light dark' : theme.value
    try {
      localStorage.setItem(KEY, theme.value)
    } catch {
      // A browser that keeps nothing forgets the choice with the page.
    }
  })
}
