/** Which of the two dialogs of the keyboard is open: the menu of commands or the list of keys. */
import { signal } from '@preact/signals'

export const keyDialog = signal<'commands' | 'keys' | undefined>(undefined)

/** The keys that were pressed between Ctrl-K and the opening of the menu, whose code is loaded then. The menu takes them. */
export const typedAhead: string[] = []

const TYPED = 'input, textarea, select, [contenteditable]'
/** The first field of a page: a filter, or the message of the chat. */
const FIRST_FIELD = 'main :is(input, textarea):not([type="file"], [type="checkbox"], :disabled)'

function openCommands(): void {
  typedAhead.length = 0
  keyDialog.value = 'commands'
}

/** Opens the dialogs by Ctrl-K and `?`, and moves to the first field of the page by `/`. */
export function watchKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event
    if (document.querySelector('dialog[open]')) return
    if (keyDialog.value === 'commands') {
      if (ctrlKey || metaKey || altKey) return
      event.preventDefault()
      if (key === 'Escape') keyDialog.value = undefined
      else typedAhead.push(key)
      return
    }
    if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === 'k') {
      event.preventDefault()
      openCommands()
      return
    }
    if (ctrlKey || metaKey || altKey || (target instanceof Element && target.closest(TYPED))) return
    if (key === '?') keyDialog.value = 'keys'
    else if (key === '/') {
      const field = document.querySelector<HTMLElement>(FIRST_FIELD)
      if (field) field.focus()
      else openCommands()
    } else return
    event.preventDefault()
  })
}
