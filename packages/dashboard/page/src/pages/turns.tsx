/** The turns: those that run and have ended, and the timeline of one. */
import { answered, api, type Got } from '../data/api.ts'
import { REFRESH_MS, refresh, useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery, to, useParams } from '../data/router.ts'
import { ChannelName } from '../ui/channel-name.tsx'
import { Act, Ask, Choose } from '../ui/controls.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Badge, Card, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { Person } from '../ui/person.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { integer, Line, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { ClockTime, duration, Time, usd } from '../ui/values.tsx'

const ROWS = '50'
const HOUR_MS = 3_600_000
/** The choices of how far back the list goes, in hours. */
const SPANS = [
  ['', 'any time'],
  ['1', 'the last hour'],
  ['24', 'the last day'],
  ['168', 'the last week'],
] as const
const STATES = [['', 'all'], 'queued', 'running', 'done', 'failed', 'aborted'] as const
type Status = 'queued' | 'running' | 'done' | 'failed' | 'aborted'

type Answer = Got<'/api/turns'>
type Turn = Answer['turns'][number] | Answer['running'][number]
type Entry = Got<'/api/turns/{id}'>['timeline'][number]

/** Sources that are no channel, in words for people. */
const SOURCES: Readonly<Record<string, string>> = {
  api: 'chat or API',
  ws: 'chat',
  sop: 'procedure',
  cli: 'command line',
  call: 'tool call',
}

/** The channel of a turn, or its source in words. */
function Source({ source }: { readonly source: string }) {
  const words = SOURCES[source]
  return words === undefined ? <ChannelName channel={source} /> : <span>{words}</span>
}

const NAMES = ['status', 'channel', 'sender', 'agent', 'error', 'hours', 'session'] as const

function useFilters() {
  const query = placeQuery()
  const given = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ''])) as Record<(typeof NAMES)[number], string>
  const paging = usePaging<string>(NAMES.map((name) => given[name]).join('|'))
  const { status, hours, ...words } = given
  // Rounded to the minute, so that the request stays the same while the page is drawn again.
  const sinceMs = Math.floor(Date.now() / 60_000) * 60_000 - Number(hours) * HOUR_MS
  return {
    given,
    paging,
    isSearch: Boolean(given.channel || given.sender || given.error),
    set: (values: Partial<typeof given>) => setPlaceQuery({ ...given, ...values }),
    request: {
      limit: ROWS,
      ...Object.fromEntries(Object.entries(words).filter(([, value]) => value !== '')),
      ...(status !== '' && { status: status as Status }),
      ...(Number(hours) > 0 && { since: new Date(sinceMs).toISOString() }),
      ...(paging.before !== undefined && { cursor: paging.before }),
    },
  }
}

export function Turns() {
  const { given, set, paging, isSearch, request } = useFilters()
  const list = useApi('/api/turns', { query: request }, { refreshMs: REFRESH_MS })
  return (
    <Page title="Turns" about="Each message that the agent works on: who asked, what it took, and why it failed.">
      <div class="filters">
        <Choose label="State" value={given.status} options={STATES} onChange={(status) => set({ status })} />
        <Choose label="Since" value={given.hours} options={SPANS} onChange={(hours) => set({ hours })} />
        <Ask label="Channel" value={given.channel} placeholder="any" onChange={(channel) => set({ channel })} />
        <Ask label="Sender" value={given.sender} placeholder="anyone" onChange={(sender) => set({ sender })} />
        <Ask label="Agent" value={given.agent} placeholder="any" onChange={(agent) => set({ agent })} />
        <Ask label="Error" value={given.error} placeholder="any words" onChange={(error) => set({ error })} />
      </div>
      {given.session !== '' && (
        <Note>
          Only the turns of one conversation.{' '}
          <button type="button" class="small" onClick={() => set({ session: '' })}>
            Show all
          </button>
        </Note>
      )}
      <Card title="Turns">
        <Loaded query={list}>
          {({ running, turns, next }) => (
            <>
              <Table<Turn>
                label="Turns"
                rows={[...running, ...turns]}
                keyOf={({ turn_id }) => turn_id}
                empty={isSearch || given.status !== '' ? 'No such turn here.' : 'No turn yet.'}
                columns={COLUMNS}
              />
              <Pager
                paging={paging}
                next={next}
                about={isSearch && next !== null && turns.length < Number(ROWS) ? '“Older” looks further back' : undefined}
              />
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  )
}

const tookMs = ({ created_at, ended_at }: Pick<Turn, 'created_at' | 'ended_at'>): number =>
  Math.max(0, (ended_at === null ? Date.now() : Date.parse(ended_at)) - Date.parse(created_at))

const stateOf = (turn: Turn): string => ('waits_for_person' in turn && turn.waits_for_person ? 'waiting_approval' : turn.status)

const COLUMNS: readonly Column<Turn>[] = [
  {
    name: 'From',
    heads: true,
    show: ({ turn_id, sender, source }) => (
      <a href={to('turns', turn_id)}>{sender === null ? <Source source={source} /> : <Line value={sender} />}</a>
    ),
  },
  { name: 'Channel', show: ({ source }) => <Source source={source} /> },
  { name: 'State', show: (turn) => <Badge state={stateOf(turn)} /> },
  { name: 'Began', show: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Took', number: true, show: (turn) => duration(tookMs(turn)) },
  { name: 'Tokens', number: true, show: ({ input_tokens, output_tokens }) => integer(input_tokens + output_tokens) },
  { name: 'Cost', number: true, show: ({ cost_usd }) => usd(cost_usd) },
  { name: 'Error', show: ({ error }) => error && <Line value={error.message} /> },
]

export function TurnPage() {
  const { id = '' } = useParams<{ id: string }>()
  const turn = useApi('/api/turns/{id}', { path: { id } }, { refreshMs: REFRESH_MS })
  const isOpen = turn.data !== undefined && turn.data.ended_at === null
  const abort = async () => {
    await attempt(() => answered(api.POST('/api/turns/{id}/abort', { params: { path: { id } } })), 'The turn is stopped.')
    await refresh('/api/turns', '/api/overview')
  }
  return (
    <Page
      title="Turn"
      about={<a href="#/turns">All turns</a>}
      actions={
        isOpen && (
          <Act class="danger" work={abort}>
            Stop it
          </Act>
        )
      }
    >
      <Loaded query={turn}>
        {(data) => (
          <>
            {data.error !== null && (
              <Note tone={data.status === 'aborted' ? 'warn' : 'bad'}>
                <Text value={data.error.message} />
              </Note>
            )}
            <Card title="What it took" padded>
              <Facts
                rows={[
                  ['State', <Badge key="state" state={data.status} />],
                  ['From', data.sender === null ? <Source key="from" source={data.source} /> : <Name key="from" value={data.sender} />],
                  ['Channel', <Source key="channel" source={data.source} />],
                  ['Conversation', data.session_id !== null && <SessionLink key="session" session={data.session_id} />],
                  ['Agent', <Name key="agent" value={data.agent} />],
                  ['Model', data.model && <Name key="model" value={data.model} />],
                  ['Began', <Time key="began" at={data.created_at} />],
                  ['Took', duration(tookMs(data))],
                  ['Tokens', `${integer(data.input_tokens)} in, ${integer(data.output_tokens)} out`],
                  ['Cost', usd(data.cost_usd)],
                  ['Attempts', integer(data.attempts)],
                  ['Id', <code key="id">{data.turn_id}</code>],
                ]}
              />
            </Card>
            <Card title="Timeline">
              <Table
                label="Timeline"
                rows={data.timeline}
                keyOf={(entry) => data.timeline.indexOf(entry)}
                empty="Nothing has been recorded of this turn yet."
                columns={TIMELINE}
              />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const SOP_SESSION = /^(?:agent:[^/]+\/)?sop:(.+)$/

/** A link to what the turn belongs to: the run of a procedure, a conversation of this browser, or that of another person. */
function SessionLink({ session }: { readonly session: string }) {
  const [, run] = SOP_SESSION.exec(session) ?? []
  if (run !== undefined) return <a href={to('runs', run)}>The run of the procedure</a>
  return session.includes('/') ? <a href={to('conversations', session)}>Open it</a> : <a href={to('chat', session)}>Open the chat</a>
}

const WHAT: Readonly<Record<Entry['kind'], string>> = {
  message: 'Message arrived',
  model: 'Model call',
  tool: 'Tool call',
  approval: 'Approval',
  reply: 'Reply',
  end: 'End of the turn',
}

/** A link to the entry of a delivery, or its name. */
function What({ entry: { kind, number } }: { readonly entry: Entry }) {
  if (kind === 'approval')
    return (
      <a class="nowrap" href="#/approvals">
        {WHAT[kind]}
      </a>
    )
  if (number === null) return <span class="nowrap">{WHAT[kind]}</span>
  return (
    <a class="nowrap" href={to('deliveries', kind === 'message' ? 'inbox' : 'outbox', number)}>
      {WHAT[kind]}
    </a>
  )
}

const TIMELINE: readonly Column<Entry>[] = [
  { name: 'Time', heads: true, show: ({ at }) => <ClockTime at={at} /> },
  { name: 'What', show: (entry) => <What entry={entry} /> },
  { name: 'Name', show: ({ name }) => name && <Line value={name} /> },
  { name: 'State', show: ({ state }) => <Badge state={state} /> },
  { name: 'Took', number: true, show: ({ took_ms }) => took_ms !== null && duration(took_ms) },
  {
    name: 'Tokens',
    number: true,
    show: ({ input_tokens, output_tokens }) => input_tokens !== null && integer(input_tokens + (output_tokens ?? 0)),
  },
  { name: 'Cost', number: true, show: ({ cost_usd }) => cost_usd !== null && usd(cost_usd) },
  { name: 'Detail', show: detailOf },
]

function detailOf({ error, finish_reason, attempts, by }: Entry) {
  if (by !== null)
    return (
      <span class="nowrap">
        by <Person by={by} />
      </span>
    )
  const said = [error, finish_reason && `ended with ${finish_reason}`, attempts !== null && attempts > 1 && `${integer(attempts)} attempts`]
  const text = said.filter(Boolean).join('; ')
  return text === '' ? null : <Line value={text} />
}
