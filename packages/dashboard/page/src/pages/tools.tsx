/** What the agent can use: tools, MCP servers and skills. */
import { useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { Ask, Copy } from '../ui/controls.tsx'
import { Badge, Card, Loaded, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Line, Name } from '../ui/text.tsx'

export function Tools() {
  const tools = useApi('/api/tools', {})
  const word = placeQuery().get('find') ?? ''
  return (
    <Page title="Tools and skills" about="What the agent can use. A tool that this build leaves out names the command that builds it in.">
      <div class="filters">
        <Ask label="Find" value={word} onChange={(value) => setPlaceQuery({ find: value })} />
      </div>
      <Card title="MCP servers">
        <Servers />
      </Card>
      <Card title="Tools">
        <Loaded query={tools}>
          {({ tools: rows }) => (
            <Table
              label="Tools"
              rows={rows.filter(({ name, feature }) => `${name} ${feature}`.includes(word.toLowerCase()))}
              keyOf={({ name, feature }) => `${feature} ${name}`}
              empty="No tool has this name."
              columns={[
                {
                  name: 'Tool',
                  heads: true,
                  show: ({ name }) => (
                    <span class="mono">
                      <Name value={name} />
                    </span>
                  ),
                },
                {
                  name: 'State',
                  show: ({ available, compiled }) => <Badge state={available ? 'ready' : compiled ? 'not available' : 'left out'} />,
                },
                { name: 'Feature', show: ({ feature }) => feature },
                { name: 'What it does', show: ({ description }) => <Line value={description} /> },
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
    </Page>
  )
}

/** The servers of the configuration, with what each offers. */
function Servers() {
  const tools = useApi('/api/tools', {})
  const config = useApi('/api/config', {})
  const names = [...new Set(config.data?.keys.flatMap(({ key }) => /^mcp\.servers\.([^.]+)\./.exec(key)?.[1] ?? []))]
  const toolsOf = (server: string) =>
    tools.data?.tools.filter(({ feature, name }) => feature === 'mcp' && name.startsWith(`mcp__${server}__`)) ?? []
  const settingOf = (server: string, key: string) => config.data?.keys.find((one) => one.key === `mcp.servers.${server}.${key}`)?.value
  return (
    <Loaded query={config}>
      {() => (
        <Table
          label="MCP servers"
          rows={names}
          keyOf={(name) => name}
          empty="No MCP server is configured; `sluice mcp add` adds one."
          columns={[
            {
              name: 'Server',
              heads: true,
              show: (name) => (
                <a href={`#/configuration?section=mcp.servers.${name}`}>
                  <Name value={name} />
                </a>
              ),
            },
            { name: 'Reached by', show: (name) => <Line value={String(settingOf(name, 'url') ?? settingOf(name, 'command') ?? '')} /> },
            { name: 'Tools', number: true, show: (name) => toolsOf(name).length },
            {
              name: 'State',
              show: (name) => (
                <Badge
                  state={settingOf(name, 'enabled') === false ? 'turned off' : toolsOf(name).length > 0 ? 'ready' : 'offers no tool'}
                />
              ),
            },
          ]}
        />
      )}
    </Loaded>
  )
}
