/** The menu of commands, which finds every place by a few letters, and the list of keys. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { keyDialog } from '../data/keys.ts'
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
  ['/', 'Go to the first field of the page'],
  ['?', 'Show these keys'],
  ['Esc', 'Close a menu or a dialog'],
] as const

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
  const [words, setWords] = useState('')
  const [at, setAt] = useState(0)
  const isOperator = role.value === 'operator'
  const overview = useOverview(isOperator)
  const wanted = words.toLowerCase().split(/\s+/)
  const found = commandsFor(isOperator, (overview.data?.status.cluster ?? null) !== null).filter(({ name }) =>
    wanted.every((word) => name.toLowerCase().includes(word)),
  )
  const chosen = Math.min(at, found.length - 1)
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen])
  const run = (command: Command | undefined) => {
    if (!command) return
    close()
    command.run()
  }
  return (
    <Dialog title="Commands" onClose={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          run(found[chosen])
        }}
      >
        <input
          aria-label="Find a command"
          placeholder="Find a command"
          value={words}
          onInput={({ currentTarget }) => {
            setWords(currentTarget.value)
            setAt(0)
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
            if (step === undefined) return
            event.preventDefault()
            setAt(Math.max(0, Math.min(chosen + step, found.length - 1)))
          }}
        />
        <ul class="commands" ref={list}>
          {found.map((command, index) => (
            <li key={command.name}>
              <button type="button" class="plain" aria-current={index === chosen ? 'true' : undefined} onClick={() => run(command)}>
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
