/** The nodes of a cluster: which of them works, what each owns, and whether work waits for a node to take it. */
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi, useOverview } from '../data/queries.ts'
import { Act } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Badge, Card, Facts, Loaded, Note, Page, type Tone } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { duration, Time } from '../ui/values.tsx'

type Cluster = Got<'/api/cluster'>
type Node = Cluster['nodes'][number]

const REFRESH_MS = 3000
const TONES: Readonly<Record<Node['state'], Tone>> = { up: 'ok', drained: 'warn', leaving: 'warn', dead: 'bad' }

const changed = (): Promise<void> => refresh('/api/cluster')

export function Nodes() {
  const cluster = useApi('/api/cluster', {}, { refreshMs: REFRESH_MS })
  return (
    <Page
      title="Nodes"
      about="The daemons that share this database. Each owns some of the shards, and another one takes them when it ends."
      actions={
        <Act
          work={async () => {
            await attempt(() => answered(api.POST('/api/cluster/rebalance')), 'The nodes compare their shares.')
            await changed()
          }}
        >
          Rebalance
        </Act>
      }
    >
      <Loaded query={cluster}>
        {(data) => (
          <>
            {data.unowned_shards > 0 && (
              <Note tone="warn">
                {integer(data.unowned_shards)} shards have no owner now: their messages and turns wait until a node takes them.
              </Note>
            )}
            {data.problems.map(({ state, text, fix }) => (
              <Note key={text} tone={state === 'failing' ? 'bad' : 'warn'}>
                <Text value={`${text} To repair it: ${fix}`} />
              </Note>
            ))}
            <Summary cluster={data} />
            <List cluster={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

const waited = (seconds: number | null | undefined): string => (typeof seconds === 'number' ? duration(seconds * 1000) : 'nothing waits')

function Summary({ cluster: { name, node, nodes, unowned_shards } }: { readonly cluster: Cluster }) {
  const overview = useOverview()
  const queues = overview.data?.status.queues
  const up = nodes.filter(({ state }) => state === 'up').length
  return (
    <Card title="Cluster" padded>
      <Facts
        rows={[
          ['Name', <Name key="name" value={name} />],
          ['This page is from', <Name key="node" value={node} />],
          ['Nodes that work', `${integer(up)} of ${integer(nodes.length)}`],
          ['Shards without an owner', integer(unowned_shards)],
          ['Oldest message that waits', waited(queues?.oldest_message_secs)],
          ['Oldest reply that waits', waited(queues?.oldest_reply_secs)],
        ]}
      />
    </Card>
  )
}

async function drain(name: string, isDrained: boolean): Promise<void> {
  if (
    !isDrained &&
    !(await confirmed(
      `Drain ${name}?`,
      'It ends what runs there and then owns nothing, also after a restart, until you let it work again.',
      'Drain',
    ))
  )
    return
  const params = { params: { path: { node: name } } }
  await attempt(
    () =>
      isDrained
        ? answered(api.POST('/api/cluster/nodes/{node}/undrain', params))
        : answered(api.POST('/api/cluster/nodes/{node}/drain', params)),
    isDrained ? 'It takes its share again.' : 'It gives its share to the others.',
  )
  await changed()
}

const List = ({ cluster: { nodes, node: own } }: { readonly cluster: Cluster }) => (
  <Card title="Nodes">
    <Table
      label="Nodes"
      rows={nodes}
      keyOf={({ node }) => node}
      empty="No node has registered."
      columns={[
        {
          name: 'Node',
          heads: true,
          show: ({ node }) => (
            <>
              <Name value={node} /> {node === own && <span class="quiet">(this one)</span>}
            </>
          ),
        },
        { name: 'State', show: ({ state }) => <Badge state={state} tone={TONES[state]} /> },
        { name: 'Shards', number: true, show: ({ shards }) => integer(shards) },
        { name: 'Last sign of life', show: ({ silent_ms }) => `${duration(silent_ms)} ago` },
        { name: 'Clock', show: ({ clock_offset_ms }) => clockOf(clock_offset_ms) },
        { name: 'Roles', show: ({ roles }) => <Line value={roles.join(', ')} /> },
        { name: 'Leases', show: ({ leases }) => leases.length > 0 && <Line value={leases.join(', ')} /> },
        { name: 'MCP programs', show: ({ programs }) => <Line value={programsOf(programs)} /> },
        { name: 'Running since', show: ({ started_at }) => <Time at={started_at} /> },
        { name: 'Version', show: ({ version }) => <Name value={version} /> },
        { name: 'Configuration', show: ({ config_version }) => (config_version === null ? 'its own' : `version ${config_version}`) },
        { name: 'Address', show: ({ url }) => url !== null && <Line value={url} /> },
        {
          name: 'Actions',
          quietName: true,
          show: ({ node, state }) =>
            (state === 'up' || state === 'drained') && (
              <Act class="small" work={() => drain(node, state === 'drained')}>
                {state === 'drained' ? 'Let it work' : 'Drain'}
              </Act>
            ),
        },
      ]}
    />
  </Card>
)

const programsOf = (programs: Node['programs']): string =>
  (programs ?? []).map(({ server, processes }) => `${server} (${processes === 0 ? 'idle' : `${integer(processes)} running`})`).join(', ')

/** Compares the clock of a node with that of the database. */
function clockOf(aheadMs: number | null): string {
  if (aheadMs === null) return 'not measured'
  return `${duration(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead'}`
}
