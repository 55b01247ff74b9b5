/** The log of the gateway: the lines that it keeps in memory, and new ones as they are written. */
import { useMemo, useState } from 'preact/hooks'
import { type LogLine, useLogLines } from '../data/log-follower.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { Ask, Choose } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Loaded, Page } from '../ui/parts.tsx'
import { integer, Line, Text } from '../ui/text.tsx'
import { ClockTime } from '../ui/values.tsx'
import { Virtual } from '../ui/virtual.tsx'
import { LogTabs } from './logs.tsx'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

export function LogLines() {
  const query = placeQuery()
  const level = LEVELS.find((one) => one === query.get('level')) ?? 'info'
  const word = query.get('find') ?? ''
  const [isPaused, setPaused] = useState(false)
  const [shown, setShown] = useState<LogLine | undefined>()
  const logs = useLogLines(level, isPaused)
  const lines = logs.data
  const found = useMemo(
    () => lines?.filter((line) => word === '' || JSON.stringify(line).toLowerCase().includes(word.toLowerCase())) ?? [],
    [lines, word],
  )
  return (
    <Page title="Logs and events" whole>
      <div class="logs">
        <LogTabs current="log" />
        <div class="row spread logs-head">
          <div class="filters">
            <Choose label="Level" value={level} options={[...LEVELS]} onChange={(value) => setPlaceQuery({ level: value, find: word })} />
            <Ask label="Find" value={word} onChange={(value) => setPlaceQuery({ level, find: value })} />
          </div>
          <div class="row">
            <span class="quiet">{integer(found.length)} lines</span>
            <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
              {isPaused ? 'Follow again' : 'Hold still'}
            </button>
          </div>
        </div>
        <Loaded query={logs}>
          {() =>
            found.length === 0 ? (
              <p class="empty">No line of this level.</p>
            ) : (
              <Virtual
                label="Log lines"
                rows={found}
                followsEnd={!isPaused}
                show={(line) => (
                  <button type="button" class="log-line" onClick={() => setShown(line)}>
                    <ClockTime at={line.time} />
                    <span class={`log-type ${line.level === 'error' ? 'bad' : line.level === 'warn' ? 'warn' : ''}`}>
                      {line.level} {line.component}
                    </span>
                    <Line value={summaryOf(line)} />
                  </button>
                )}
              />
            )
          }
        </Loaded>
      </div>
      {shown && (
        <Dialog title={shown.level} onClose={() => setShown(undefined)}>
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

const summaryOf = ({ number: _, time: __, level: ___, component: ____, message, ...rest }: LogLine): string =>
  [message, ...Object.entries(rest).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)].join(
    '  ',
  )
