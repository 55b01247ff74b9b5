/** The overview: what waits for a person, how much there is to do, and whether everything works. */
import type { Overview as Data } from '../data/api.ts'
import { useOverview } from '../data/queries.ts'
import { to } from '../data/router.ts'
import { ApprovalCard } from '../ui/approval.tsx'
import { HistoryCard } from '../ui/history-card.tsx'
import { Badge, Card, Empty, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, Name, Text } from '../ui/text.tsx'
import { duration, Time } from '../ui/values.tsx'

export function Overview() {
  const overview = useOverview()
  return (
    <Page title="Overview">
      <Loaded query={overview}>
        {(data) => (
          <>
            <Warnings data={data} />
            <Figures data={data} />
            <Waiting data={data} />
            <Notices data={data} />
            <HistoryCard of="all" day={data.history} />
            <div class="grid">
              <Channels data={data} />
              <Machine data={data} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

type ProblemOf = Data['status']['problems'][number]

/** Where a problem is looked at, and the words of its button. */
const PLACES: Readonly<Record<ProblemOf['about'], readonly [place: string, words: string]>> = {
  store: ['#/logs/lines', 'Open the log'],
  config: ['#/configuration', 'Open the configuration'],
  provider: ['#/setup', 'Test the provider'],
  channel: ['#/channels', 'Open the channel'],
  link: ['#/features', 'Open the features'],
  feature: ['#/features', 'Open the features'],
  sandbox: ['#/configuration?section=security.sandbox', 'Open its settings'],
  clock: ['#/logs?type=clock_jumped', 'Open the events'],
  backup: ['#/configuration?section=backup', 'Open its settings'],
  cluster: ['#/nodes', 'Open the nodes'],
  proxy: ['#/configuration?section=gateway', 'Open its settings'],
}

const placeOf = ({ about, name }: ProblemOf): string => (about === 'channel' && name !== null ? to('channels', name) : PLACES[about][0])

function Warnings({ data: { status } }: { readonly data: Data }) {
  const isFirstRun = status.models.every((model) => model.startsWith('offline:'))
  return (
    <>
      {isFirstRun && (
        <Note tone="info">
          No model is set up yet: the built-in provider only repeats what it is told. <a href="#/setup">Set up a provider</a>
        </Note>
      )}
      {status.problems.map((problem) => (
        <Note key={`${problem.about} ${problem.name}`} tone={problem.state === 'failing' ? 'bad' : 'warn'}>
          <div class="row spread">
            <span class="grow">
              <Text value={problem.text} />
              {problem.since && (
                <span class="quiet">
                  since <Time at={problem.since} />
                </span>
              )}
            </span>
            <a class="button small" href={placeOf(problem)}>
              {PLACES[problem.about][1]}
            </a>
          </div>
        </Note>
      ))}
      {status.queues.replies_ambiguous > 0 && (
        <Note tone="warn">
          <div class="row spread">
            <span class="grow">
              {integer(status.queues.replies_ambiguous)} replies may not have arrived, and are not sent again by themselves.
            </span>
            <a class="button small" href="#/deliveries/outbox?state=ambiguous">
              Look at them
            </a>
          </div>
        </Note>
      )}
    </>
  )
}

function Figure({
  name,
  value,
  href,
  detail,
  tone = '',
}: {
  name: string
  value: number
  href: string
  detail?: string | undefined
  tone?: string
}) {
  return (
    <a class={`figure ${value > 0 ? tone : ''}`} href={href}>
      <span class="name">{name}</span>
      <span class="value">{integer(value)}</span>
      <span class="detail">{detail ?? ' '}</span>
    </a>
  )
}

const oldest = (seconds: number | null): string | undefined => (seconds === null ? undefined : `oldest ${duration(seconds * 1000)}`)

function Figures({ data: { status } }: { readonly data: Data }) {
  const { queues } = status
  return (
    <section class="figures" aria-label="Queues">
      <Figure name="Turns running" value={status.turns_running} detail={`${integer(status.turns_queued)} queued`} href="#/turns" />
      <Figure
        name="Messages pending"
        value={queues.messages_pending}
        detail={oldest(queues.oldest_message_secs)}
        href="#/deliveries/inbox?state=pending"
      />
      <Figure
        name="Replies pending"
        value={queues.replies_pending}
        detail={oldest(queues.oldest_reply_secs)}
        href="#/deliveries/outbox?state=queued"
      />
      <Figure
        name="Dead letters"
        value={queues.messages_dead + queues.replies_dead}
        detail={queues.replies_ambiguous > 0 ? `${integer(queues.replies_ambiguous)} ambiguous` : undefined}
        href={queues.messages_dead > 0 ? '#/deliveries/inbox?state=dead' : '#/deliveries/outbox?state=dead'}
        tone="bad"
      />
      <Figure name="Approvals pending" value={queues.approvals_pending} href="#/approvals" tone="warn" />
    </section>
  )
}

function Waiting({ data: { approvals } }: { readonly data: Data }) {
  return (
    <Card title="Waits for a person" padded>
      {approvals.approvals.length === 0 ? (
        <Empty>Nothing waits for you.</Empty>
      ) : (
        <div class="stack">
          {approvals.approvals.map((approval) => (
            <ApprovalCard key={`${approval.run_id}/${approval.step_id}`} approval={approval} />
          ))}
        </div>
      )}
    </Card>
  )
}

/** What operators were told of, newest first. */
function Notices({ data }: { readonly data: Data }) {
  const rows = data.notices.notices
  if (rows.length === 0) return null
  return (
    <Card title="Notices">
      <Table
        label="Notices"
        rows={rows}
        keyOf={({ at, about }) => `${at} ${about}`}
        empty=""
        columns={[
          { name: 'Notice', heads: true, show: ({ text }) => <Text value={text} /> },
          { name: 'Kind', show: ({ kind }) => kind.replace('_', ' ') },
          { name: 'Time', show: ({ at }) => <Time at={at} /> },
        ]}
      />
    </Card>
  )
}

function Channels({ data: { health } }: { readonly data: Data }) {
  return (
    <Card title="Channels" actions={<a href="#/channels">All channels</a>}>
      <Table
        label="Channels"
        rows={health.channels}
        keyOf={({ channel }) => channel}
        empty="No channel is configured."
        columns={[
          { name: 'Channel', heads: true, show: ({ channel, title }) => <a href={to('channels', channel)}>{title}</a> },
          { name: 'State', show: ({ state }) => <Badge state={state} /> },
          { name: 'Last message', show: ({ last_event_at }) => <Time at={last_event_at} /> },
          { name: 'Detail', show: ({ detail }) => detail && <Line value={detail} /> },
        ]}
      />
    </Card>
  )
}

function Machine({ data: { status, health } }: { readonly data: Data }) {
  return (
    <Card title="Gateway" padded>
      <Facts
        rows={[
          ['Health', <Badge key="health" state={health.status} />],
          ['Models', status.models.map((model) => <Name key={model} value={model} />)],
          ['Provider', <Badge key="provider" state={health.provider.state} />],
          ['Sandbox', status.sandbox ? <Badge key="sandbox" state={status.sandbox.state} /> : '—'],
          ['Running since', <Time key="since" at={status.started_at} />],
          ['Sessions active', integer(status.sessions_active)],
          ['Last backup', <Time key="backup" at={status.last_backup?.at} />],
        ]}
      />
    </Card>
  )
}
