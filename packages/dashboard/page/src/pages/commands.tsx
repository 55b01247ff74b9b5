/** The menu of commands, which finds every place by a few letters, and the list of keys. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { keyDialog, typedAhead } from '../data/keys.ts'
import { useOverview } from '../data/queries.ts'
import { go } from '../data/router.ts'
import { role } from '../data/session.ts'
import { theme } from '../data/theme.ts'
import { THEMES } from '../data/theme-choice.ts'
import { Dialog } from '../ui/dialog.tsx'
import { placesFor } from '../ui/shell.tsx'

interface Command {
  readonly name: string
  readonly run: () => void
}

const KEYS = [
  ['Ctrl K', 'Open the menu of commands'],
  ['/', 'Go to the first field of the page, or open the menu of commands'],
  ['?', 'Show these keys'],
  ['Esc', 'Close a menu or a dialog'],
] as const

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** What operators do most, besides opening a place. */
const SHORTCUTS = [
  ['Failed turns', '/turns?status=failed'],
  ['Dead messages', '/deliveries/inbox?state=dead'],
  ['Dead replies', '/deliveries/outbox?state=dead'],
  ['Set up a provider', '/setup'],
] as const

function commandsFor(isOperator: boolean, isCluster: boolean): readonly Command[] {
  const goTo = (name: string, place: string): Command => ({ name, run: () => go(place) })
  return [
    ...placesFor(isOperator, isCluster).flatMap(([, places]) => places.map(({ name, path }) => goTo(`Open ${name}`, path))),
    goTo('New conversation', '/chat'),
    ...(isOperator ? SHORTCUTS.map(([name, place]) => goTo(name, place)) : []),
    ...THEMES.map((one) => ({
      name: `Theme: ${one}`,
      run: () => {
        theme.value = one
      },
    })),
    {
      name: 'Show the keys',
      run: () => {
        keyDialog.value = 'keys'
      },
    },
  ]
}

const close = (): void => {
  keyDialog.value = undefined
}

export function KeyDialogs() {
  if (keyDialog.value === 'commands') return <Commands />
  return keyDialog.value === 'keys' ? <Keys /> : null
}

function Commands() {
  const words = useSignal('')
  const at = useSignal(0)
  const isOperator = role.value === 'operator'
  const overview = useOverview(isOperator)
  const isCluster = (overview.data?.status.cluster ?? null) !== null
  // Keys can follow each other faster than the page renders, so that each of them reads what the ones before it have written.
  const matches = () => {
    const wanted = words.value.toLowerCase().split(/\s+/)
    return commandsFor(isOperator, isCluster).filter(({ name }) => wanted.every((word) => name.toLowerCase().includes(word)))
  }
  const chosen = () => Math.max(0, Math.min(at.value, matches().length - 1))
  const type = (text: string) => {
    words.value = text
    at.value = 0
  }
  const step = (by: number) => {
    at.value = Math.max(0, Math.min(chosen() + by, matches().length - 1))
  }
  const run = (command: Command | undefined) => {
    if (!command) return
    close()
    command.run()
  }
  const press = (key: string) => {
    if (key in STEPS) step(STEPS[key] ?? 0)
    else if (key === 'Enter') run(matches()[chosen()])
    else if (key === 'Backspace') type(words.value.slice(0, -1))
    else if ([...key].length === 1) type(words.value + key)
  }
  useEffect(() => typedAhead.splice(0).forEach(press), [])
  const list = useRef<HTMLUListElement>(null)
  const found = matches()
  const current = chosen()
  useEffect(() => list.current?.children[current]?.scrollIntoView({ block: 'nearest' }), [current])
  return (
    <Dialog title="Commands" onClose={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          press('Enter')
        }}
      >
        <input
          aria-label="Find a command"
          placeholder="Find a command"
          value={words.value}
          onInput={({ currentTarget }) => type(currentTarget.value)}
          onKeyDown={(event) => {
            if (!(event.key in STEPS)) return
            event.preventDefault()
            press(event.key)
          }}
        />
        <ul class="commands" ref={list}>
          {found.map((command, index) => (
            <li key={command.name}>
              <button type="button" class="plain" aria-current={index === current ? 'true' : undefined} onClick={() => run(command)}>
                {command.name}
              </button>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="empty">No such command.</p>}
      </form>
    </Dialog>
  )
}

const Keys = () => (
  <Dialog title="Keys" onClose={close}>
    <dl class="facts">
      {KEYS.map(([key, what]) => (
        <>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </>
      ))}
    </dl>
    <div class="row end">
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  </Dialog>
)
