/** The deliveries: messages that arrived, replies that were sent, and those that nobody could deliver. */
import type { ComponentChildren } from 'preact'
import { answered, api, type Got } from '../data/api.ts'
import { REFRESH_MS, refresh, useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery, to, useParams } from '../data/router.ts'
import { ChannelName } from '../ui/channel-name.tsx'
import { Act, Ask, Choose } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Badge, Card, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { Time } from '../ui/values.tsx'

const ROWS = '50'
type Box = 'inbox' | 'outbox'

const changed = (): Promise<void> => refresh('/api/deliveries', '/api/overview')

export function Deliveries() {
  const { box } = useParams<{ box?: string }>()
  const which: Box = box === 'outbox' ? 'outbox' : 'inbox'
  const counts = useApi('/api/deliveries', {}, { refreshMs: REFRESH_MS })
  return (
    <Page title="Deliveries" about="Every message is stored before its sender is answered, and every reply until it is sent.">
      <nav class="tabs" aria-label="Direction">
        <a href="#/deliveries/inbox" aria-current={which === 'inbox' ? 'page' : undefined}>
          Inbox{' '}
          {counts.data && counts.data.inbox.dead > 0 && (
            <span class="count">
              {integer(counts.data.inbox.dead)}
              <span class="hidden-text"> dead</span>
            </span>
          )}
        </a>
        <a href="#/deliveries/outbox" aria-current={which === 'outbox' ? 'page' : undefined}>
          Outbox{' '}
          {counts.data && counts.data.outbox.dead + counts.data.outbox.ambiguous > 0 && (
            <span class="count">
              {integer(counts.data.outbox.dead + counts.data.outbox.ambiguous)}
              <span class="hidden-text"> dead or ambiguous</span>
            </span>
          )}
        </a>
      </nav>
      {which === 'inbox' ? <Inbox states={counts.data?.states.inbox ?? []} /> : <Outbox states={counts.data?.states.outbox ?? []} />}
    </Page>
  )
}

/** What the address says about the list that is shown: its state, channel, person and words, and where its page begins. */
function useFilters(person: 'sender' | 'to') {
  const query = placeQuery()
  const names = ['state', 'channel', person, 'text'] as const
  const given = Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']))
  const { state = '', channel = '', text = '' } = given
  const paging = usePaging<number>(names.map((name) => given[name]).join('|'))
  return {
    state,
    channel,
    text,
    person: given[person] ?? '',
    isSearch: Boolean(given[person] || text),
    paging,
    set: (values: Readonly<Record<string, string>>) => setPlaceQuery({ ...given, ...values }),
    request: {
      limit: ROWS,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '')),
      ...(paging.before !== undefined && { before: String(paging.before) }),
    },
  }
}
type Filters = ReturnType<typeof useFilters>

interface FilterRowProps {
  readonly filters: Filters
  readonly states: readonly string[]
  readonly person: readonly [name: 'sender' | 'to', label: string]
  /** What can be done with all entries in the chosen state. */
  readonly children: ComponentChildren
}

const FilterRow = ({ filters: { state, channel, text, person: value, set }, states, person: [name, label], children }: FilterRowProps) => (
  <div class="row spread">
    <div class="filters">
      <Choose label="State" value={state} options={[['', 'all'], ...states]} onChange={(chosen) => set({ state: chosen })} />
      <Ask label="Channel" value={channel} placeholder="any" onChange={(given) => set({ channel: given })} />
      <Ask label={label} value={value} placeholder="anyone" onChange={(given) => set({ [name]: given })} />
      <Ask label="Text" value={text} placeholder="any words" onChange={(given) => set({ text: given })} />
    </div>
    {children}
  </div>
)

/** A page of a search looks at so many entries, and may find few of them. */
const lookedBack = ({ isSearch }: Filters, { length }: readonly unknown[], next: number | null): string | undefined =>
  isSearch && next !== null && length < Number(ROWS) ? `looked as far back as number ${next}; “Older” looks further` : undefined

interface BoxProps {
  /** The states that a filter can choose. */
  readonly states: readonly string[]
}

function Inbox({ states }: BoxProps) {
  const filters = useFilters('sender')
  const list = useApi('/api/deliveries/inbox', { query: filters.request }, { refreshMs: REFRESH_MS })
  return (
    <>
      <FilterRow filters={filters} states={states} person={['sender', 'Sender']}>
        <ReplayAllMessages {...filters} />
      </FilterRow>
      <Card title="Messages that arrived">
        <Loaded query={list}>
          {({ messages, next }) => (
            <>
              <Table
                label="Messages that arrived"
                rows={messages}
                keyOf={({ number }) => number}
                empty={filters.isSearch ? 'No such message here.' : 'No message.'}
                columns={[
                  {
                    name: 'Number',
                    heads: true,
                    number: true,
                    show: ({ number }) => <a href={to('deliveries', 'inbox', number)}>{number}</a>,
                  },
                  { name: 'State', show: (row) => <Badge state={row.state} /> },
                  { name: 'Channel', show: ({ channel: name }) => <ChannelName channel={name} /> },
                  { name: 'Sender', show: ({ sender }) => <Line value={sender} /> },
                  { name: 'Arrived', show: ({ received_at }) => <Time at={received_at} /> },
                  { name: 'Attempts', number: true, show: ({ attempts }) => integer(attempts) },
                  { name: 'Error', show: ({ error }) => error && <Line value={error} /> },
                ]}
              />
              <Pager paging={filters.paging} next={next} about={lookedBack(filters, messages, next)} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  )
}

function ReplayAllMessages({ state, channel, isSearch }: Filters) {
  // A replay of many has no search.
  if (isSearch || (state !== 'dead' && state !== 'limited')) return null
  const replay = async () => {
    if (!(await confirmed(`Replay all ${state} messages?`, 'Each runs again in a new turn, the oldest first.', 'Replay all', false))) return
    await attempt(
      () => answered(api.POST('/api/deliveries/inbox/replay', { body: { state: [state], ...(channel && { channel }) } })),
      ({ replayed, too_old }) => `${integer(replayed.length)} replayed; ${integer(too_old.length)} are too old.`,
    )
    await changed()
  }
  return <Act work={replay}>Replay all of these</Act>
}

function Outbox({ states }: BoxProps) {
  const filters = useFilters('to')
  const list = useApi('/api/deliveries/outbox', { query: filters.request }, { refreshMs: REFRESH_MS })
  return (
    <>
      <FilterRow filters={filters} states={states} person={['to', 'Receiver']}>
        <SendAllReplies {...filters} />
      </FilterRow>
      <Card title="Replies">
        <Loaded query={list}>
          {({ replies, next }) => (
            <>
              <Replies replies={replies} {...(filters.isSearch && { empty: 'No such reply here.' })} />
              <Pager paging={filters.paging} next={next} about={lookedBack(filters, replies, next)} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  )
}

function SendAllReplies({ state, channel, isSearch }: Filters) {
  if (isSearch || (state !== 'dead' && state !== 'ambiguous')) return null
  const send = async () => {
    const warning =
      state === 'ambiguous'
        ? 'Each may arrive twice, because it is not known whether it arrived before.'
        : 'Each is sent again, the oldest first.'
    if (!(await confirmed(`Send all ${state} replies again?`, warning, 'Send all', state === 'ambiguous'))) return
    await attempt(
      () => answered(api.POST('/api/deliveries/outbox/replay', { body: { state: [state], ...(channel && { channel }) } })),
      ({ replayed, too_old }) => `${integer(replayed.length)} queued; ${integer(too_old.length)} are too old.`,
    )
    await changed()
  }
  return <Act work={send}>Send all of these again</Act>
}

interface RepliesProps {
  readonly replies: Got<'/api/deliveries/outbox'>['replies']
  readonly empty?: string
}

const Replies = ({ replies, empty = 'No reply.' }: RepliesProps) => (
  <Table
    label="Replies"
    rows={replies}
    keyOf={({ number }) => number}
    empty={empty}
    columns={[
      { name: 'Number', heads: true, number: true, show: ({ number }) => <a href={to('deliveries', 'outbox', number)}>{number}</a> },
      { name: 'State', show: ({ state }) => <Badge state={state} /> },
      { name: 'Channel', show: ({ channel }) => <ChannelName channel={channel} /> },
      { name: 'To', show: ({ to: { to: receiver } }) => <Line value={receiver} /> },
      { name: 'Text', show: ({ text }) => text !== null && <Line value={text} /> },
      { name: 'Queued', show: ({ created_at }) => <Time at={created_at} /> },
      { name: 'Attempts', number: true, show: ({ attempts }) => integer(attempts) },
      { name: 'Error', show: ({ error }) => error && <Line value={error} /> },
    ]}
  />
)

type Turn = Got<'/api/deliveries/inbox/{number}'>['turn']

const TurnCard = ({ turn }: { readonly turn: Turn }) => (
  <Card title="Turn" padded>
    {turn === null ? (
      <p class="empty">No turn has run.</p>
    ) : (
      <div class="stack">
        <Facts
          rows={[
            [
              'Turn',
              <a key="id" href={to('turns', turn.turn_id)}>
                Its timeline
              </a>,
            ],
            ['State', <Badge key="state" state={turn.status} />],
            ['Model', turn.model && <Name value={turn.model} />],
            turn.error !== null && ['Error', <Text key="error" value={`${turn.error.code}: ${turn.error.message}`} />],
          ]}
        />
        {turn.response !== null && (
          <div class="block">
            <Text value={turn.response} />
          </div>
        )}
      </div>
    )}
  </Card>
)

export function InboxEntry() {
  const { number = '' } = useParams<{ number: string }>()
  const entry = useApi('/api/deliveries/inbox/{number}', { path: { number } }, { refreshMs: REFRESH_MS })
  return (
    <Page
      title={`Message ${number}`}
      about={<a href="#/deliveries/inbox">All messages</a>}
      actions={
        entry.data && (
          <>
            <Discard box="inbox" number={number} state={entry.data.state} />
            <ReplayMessage number={number} state={entry.data.state} />
          </>
        )
      }
    >
      <Loaded query={entry}>
        {(data) => (
          <>
            {data.error !== null && (
              <Note tone={data.state === 'dead' ? 'bad' : 'warn'}>
                <Text value={data.error} />
              </Note>
            )}
            <div class="grid">
              <Card title="Message" padded>
                <div class="stack">
                  <Facts
                    rows={[
                      ['State', <Badge key="state" state={data.state} />],
                      ['Channel', <ChannelName key="channel" channel={data.channel} account={data.account} />],
                      ['Sender', <Name key="sender" value={data.sender} />],
                      ['Session', <Name key="session" value={data.session} />],
                      ['Id of the platform', <Name key="id" value={data.message_id} />],
                      ['Verified by', <Name key="verdict" value={data.verdict} />],
                      ['Arrived', <Time key="at" at={data.received_at} />],
                      ['Attempts', integer(data.attempts)],
                      data.next_at !== null && ['Next attempt', <Time key="next" at={data.next_at} />],
                      data.ended_at !== null && ['Ended', <Time key="ended" at={data.ended_at} />],
                    ]}
                  />
                  {data.message ? (
                    <div class="block">
                      <Text value={data.message.text} />
                    </div>
                  ) : (
                    <p class="empty">Its content is no longer kept.</p>
                  )}
                  {data.message?.attachments.map(({ kind, name, mime }, index) => (
                    <p key={index}>
                      <span class="badge">{kind}</span> <Name value={name} /> <span class="quiet">{mime}</span>
                    </p>
                  ))}
                </div>
              </Card>
              <TurnCard turn={data.turn} />
            </div>
            <Card title="Replies">
              <Replies replies={data.replies} />
            </Card>
            <Card title="Request as it arrived" padded>
              {data.raw ? (
                <div class="block mono">
                  <Text value={data.raw} />
                </div>
              ) : data.raw_base64 ? (
                <div class="block mono">
                  <Text value={data.raw_base64} />
                </div>
              ) : (
                <p class="empty">The request is no longer kept.</p>
              )}
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const DISCARDABLE: Readonly<Record<Box, readonly string[]>> = { inbox: ['dead', 'limited'], outbox: ['dead', 'ambiguous'] }

/** Takes a dead letter out of those that wait for a person. */
function Discard({ box, number, state }: { readonly box: Box; readonly number: string; readonly state: string }) {
  if (!DISCARDABLE[box].includes(state)) return null
  const discard = async () => {
    const what = box === 'inbox' ? 'message' : 'reply'
    if (
      !(await confirmed(
        `Discard this ${what}?`,
        'It no longer counts as a dead letter. Its content is kept as long as that of others. The audit log records who discarded it.',
        'Discard',
      ))
    )
      return
    const params = { params: { path: { number } } }
    await attempt(
      () =>
        box === 'inbox'
          ? answered(api.POST('/api/deliveries/inbox/{number}/discard', params))
          : answered(api.POST('/api/deliveries/outbox/{number}/discard', params)),
      'Discarded.',
    )
    await changed()
  }
  return (
    <Act class="danger" work={discard}>
      Discard
    </Act>
  )
}

function ReplayMessage({ number, state }: { readonly number: string; readonly state: string }) {
  if (state === 'pending' || state === 'running') return null
  return (
    <Act
      class="primary"
      work={async () => {
        if (
          state === 'done' &&
          !(await confirmed(
            'Run this message again?',
            'It was answered before; it gets another turn and another reply.',
            'Run again',
            false,
          ))
        )
          return
        await attempt(() => answered(api.POST('/api/deliveries/inbox/{number}/replay', { params: { path: { number } } })), 'It is queued.')
        await changed()
      }}
    >
      Replay
    </Act>
  )
}

export function OutboxEntry() {
  const { number = '' } = useParams<{ number: string }>()
  const entry = useApi('/api/deliveries/outbox/{number}', { path: { number } }, { refreshMs: REFRESH_MS })
  return (
    <Page
      title={`Reply ${number}`}
      about={<a href="#/deliveries/outbox">All replies</a>}
      actions={
        entry.data && (
          <>
            <Discard box="outbox" number={number} state={entry.data.state} />
            <ReplayReply number={number} state={entry.data.state} />
          </>
        )
      }
    >
      <Loaded query={entry}>
        {(data) => (
          <>
            {data.error !== null && (
              <Note tone={data.state === 'dead' ? 'bad' : 'warn'}>
                <Text value={data.error} />
              </Note>
            )}
            {data.repeated && <Note tone="warn">It was sent again after an answer 503, and may have arrived twice.</Note>}
            <div class="grid">
              <Card title="Reply" padded>
                <div class="stack">
                  <Facts
                    rows={[
                      ['State', <Badge key="state" state={data.state} />],
                      ['Channel', <ChannelName key="channel" channel={data.channel} account={data.account} />],
                      ['To', <Name key="to" value={data.to.to} />],
                      data.to.thread !== null && ['Thread', <Name key="thread" value={data.to.thread} />],
                      data.parts > 1 && ['Part', `${integer(data.part)} of ${integer(data.parts)}`],
                      data.inbox !== null && [
                        'Answers',
                        <a key="inbox" href={to('deliveries', 'inbox', data.inbox)}>
                          Message {data.inbox}
                        </a>,
                      ],
                      ['Queued', <Time key="at" at={data.created_at} />],
                      ['Attempts', integer(data.attempts)],
                      data.next_at !== null && ['Next attempt', <Time key="next" at={data.next_at} />],
                      data.ended_at !== null && ['Ended', <Time key="ended" at={data.ended_at} />],
                      data.provider_id !== null && ['Id of the platform', <Name key="id" value={data.provider_id} />],
                    ]}
                  />
                  {data.text !== null && (
                    <div class="block">
                      <Text value={data.text} />
                    </div>
                  )}
                </div>
              </Card>
              <TurnCard turn={data.turn} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function ReplayReply({ number, state }: { readonly number: string; readonly state: string }) {
  if (state !== 'dead' && state !== 'ambiguous' && state !== 'discarded') return null
  return (
    <Act
      class="primary"
      work={async () => {
        if (
          state === 'ambiguous' &&
          !(await confirmed('Send this reply again?', 'It is not known whether it arrived: it may arrive twice.', 'Send again'))
        )
          return
        await attempt(() => answered(api.POST('/api/deliveries/outbox/{number}/replay', { params: { path: { number } } })), 'It is queued.')
        await changed()
      }}
    >
      Send again
    </Act>
  )
}
