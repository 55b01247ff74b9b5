/** The events and the log lines of the gateway, as they happen. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Line as EventLine, follow, lines, types } from '../data/event-log.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { Ask, Choose } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Page } from '../ui/parts.tsx'
import { integer, Line, Text } from '../ui/text.tsx'
import { ClockTime } from '../ui/values.tsx'
import { Virtual } from '../ui/virtual.tsx'

export function Logs() {
  const query = placeQuery()
  const type = query.get('type') ?? ''
  const word = query.get('find') ?? ''
  const [isPaused, setPaused] = useState(false)
  const [shown, setShown] = useState<EventLine | undefined>()
  const [held, setHeld] = useState<readonly EventLine[]>([])
  useEffect(follow, [])
  const all = isPaused ? held : lines.value
  const wanted = word.toLowerCase()
  const found = useMemo(
    () =>
      type === '' && wanted === '' ? all : all.filter((line) => (type === '' || line.type === type) && searchText(line).includes(wanted)),
    [all, type, wanted],
  )
  return (
    <Page title="Logs and events" whole>
      <div class="logs">
        <LogTabs current="events" />
        <div class="row spread logs-head">
          <div class="filters">
            <Choose
              label="Type"
              value={type}
              options={[['', 'all'], ...types.value.map((one) => [one, one] as const)]}
              onChange={(value) => setPlaceQuery({ type: value, find: word })}
            />
            <Ask label="Find" value={word} onChange={(value) => setPlaceQuery({ type, find: value })} />
          </div>
          <div class="row">
            <span class="quiet">{integer(found.length)} events</span>
            <button
              type="button"
              aria-pressed={isPaused}
              onClick={() => {
                setHeld(lines.value)
                setPaused(!isPaused)
              }}
            >
              {isPaused ? 'Follow again' : 'Hold still'}
            </button>
          </div>
        </div>
        {found.length === 0 ? (
          <p class="empty">No event yet.</p>
        ) : (
          <Virtual
            label="Events"
            rows={found}
            followsEnd={!isPaused}
            show={(line) => (
              <button type="button" class="log-line" onClick={() => setShown(line)}>
                <ClockTime at={line.timestamp} />
                <span class={`log-type ${toneOf(line.type)}`}>{line.type}</span>
                <Line value={summaryOf(line)} class="mono" />
              </button>
            )}
          />
        )}
      </div>
      {shown && (
        <Dialog title={shown.type} onClose={() => setShown(undefined)}>
          <div class="block mono">
            <Text value={JSON.stringify(shown, null, 2)} />
          </div>
          <div class="row end">
            <button type="button" onClick={() => setShown(undefined)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </Page>
  )
}

export const LogTabs = ({ current }: { readonly current: 'events' | 'log' }) => (
  <nav class="tabs" aria-label="Kinds">
    <a href="#/logs" aria-current={current === 'events' ? 'page' : undefined}>
      Events
    </a>
    <a href="#/logs/lines" aria-current={current === 'log' ? 'page' : undefined}>
      Log
    </a>
  </nav>
)

/** The text of each event that a search has looked at: thousands of events are searched several times a second. */
const searchTexts = new WeakMap<EventLine, string>()

function searchText(line: EventLine): string {
  const known = searchTexts.get(line)
  if (known !== undefined) return known
  const text = JSON.stringify(line).toLowerCase()
  searchTexts.set(line, text)
  return text
}

const toneOf = (type: string): string =>
  /fail|reject|gap|revoked|stopped/.test(type) ? 'bad' : /approval|limit|skipped/.test(type) ? 'warn' : ''

const summaryOf = (line: EventLine): string =>
  Object.entries(line)
    .filter(([name, value]) => !['id', 'timestamp', 'type'].includes(name) && value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value.slice(0, 200) : JSON.stringify(value)}`)
    .join('  ')
