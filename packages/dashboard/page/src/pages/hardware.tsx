/** The hardware: boards, adapters and robots, as far as this build has them. */
import { REFRESH_MS, useApi } from '../data/queries.ts'
import { Copy } from '../ui/controls.tsx'
import { Badge, Card, Loaded, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Line, Name, Text } from '../ui/text.tsx'

export function Hardware() {
  const features = useApi('/api/features', {})
  const tools = useApi('/api/tools', {})
  const doctor = useApi('/api/doctor', {})
  const health = useApi('/api/health', {}, { refreshMs: REFRESH_MS })
  const ours = features.data?.features.filter(({ kind }) => kind === 'hardware') ?? []
  const names = ours.map(({ feature }) => feature)
  return (
    <Page title="Hardware" about="What the agent can read and move, and whether it is there.">
      <Card title="Features">
        <Loaded query={features}>
          {() => (
            <Table
              label="Features of hardware"
              rows={ours}
              keyOf={({ feature }) => feature}
              empty="No feature of hardware is known."
              columns={[
                { name: 'Feature', heads: true, show: ({ feature }) => feature },
                { name: 'State', show: ({ state }) => <Badge state={state} /> },
                { name: 'Reason', show: ({ reason }) => reason && <Line value={reason} /> },
                {
                  name: 'Build command',
                  show: ({ build }) =>
                    build && (
                      <span class="row">
                        <code>{build}</code> <Copy text={build} />
                      </span>
                    ),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Checks">
        <Loaded query={doctor}>
          {({ checks }) => (
            <Table
              label="Checks of hardware"
              rows={checks.filter(({ check }) => names.some((name) => check.startsWith(name)))}
              keyOf={({ check, detail }) => `${check} ${detail}`}
              empty="No feature of this build has anything to check."
              columns={[
                { name: 'Check', heads: true, show: ({ check }) => check },
                { name: 'State', show: ({ status }) => <Badge state={status} /> },
                { name: 'Detail', show: ({ detail }) => <Text value={detail} /> },
                { name: 'Remedy', show: ({ fix }) => fix !== null && <Text value={fix} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Connections">
        <Loaded query={health}>
          {({ links }) => (
            <Table
              label="Connections"
              rows={links}
              keyOf={({ name }) => name}
              empty="No feature keeps a connection open."
              columns={[
                { name: 'Connection', heads: true, show: ({ name }) => <Name value={name} /> },
                { name: 'State', show: ({ state }) => <Badge state={state} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Tools">
        <Loaded query={tools}>
          {({ tools: rows }) => (
            <Table
              label="Tools of hardware"
              rows={rows.filter(({ feature }) => names.includes(feature as (typeof names)[number]))}
              keyOf={({ name, feature }) => `${feature} ${name}`}
              empty="No tool reaches hardware."
              columns={[
                { name: 'Tool', heads: true, show: ({ name }) => <span class="mono">{name}</span> },
                {
                  name: 'State',
                  show: ({ available, compiled }) => <Badge state={available ? 'ready' : compiled ? 'not available' : 'left out'} />,
                },
                { name: 'What it does', show: ({ description }) => <Line value={description} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  )
}
