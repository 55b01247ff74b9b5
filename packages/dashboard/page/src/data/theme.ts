/** Dark or light: as the system prefers, or as chosen with the switch. */
import { effect, signal } from '@preact/signals'
import { applyTheme, storedTheme, storeTheme, type Theme } from './theme-choice.ts'

export const theme = signal<Theme>(storedTheme())

/** Applies each choice. */
export function followTheme(): void {
  effect(() => {
    applyTheme(theme.value)
    storeTheme(theme.value)
  })
}
