/** What the agent can use: tools, MCP servers and skills. */
import { useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import { REFRESH_MS, refresh, useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { Act, Ask, BuildCommand } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Badge, Card, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Line, Name, Text } from '../ui/text.tsx'
import { attempt, say } from '../ui/toast.tsx'
import { TOOL_NAME, TOOL_PURPOSE, TOOL_STATE } from '../ui/tool-columns.tsx'
import { bytes } from '../ui/values.tsx'

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
      <Skills />
      <Card title="Tools">
        <Loaded query={tools}>
          {({ tools: rows }) => (
            <Table
              label="Tools"
              rows={rows.filter(({ name, feature }) => `${name} ${feature}`.includes(word.toLowerCase()))}
              keyOf={({ name, feature }) => `${feature} ${name}`}
              empty="No tool has this name."
              columns={[
                TOOL_NAME,
                TOOL_STATE,
                { name: 'Feature', show: ({ feature }) => feature },
                {
                  ...TOOL_PURPOSE,
                  show: (tool) => (
                    <>
                      {TOOL_PURPOSE.show(tool)}
                      {tool.build && <BuildCommand command={tool.build} />}
                    </>
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

const NO_SERVER = (
  <>
    No MCP server is configured; <code>sluice mcp add</code> adds one.
  </>
)

type Server = Got<'/api/mcp/servers'>['servers'][number]

/** The servers of the configuration, with what each offers. */
function Servers() {
  const features = useApi('/api/features', {})
  const mcp = features.data?.features.find(({ feature }) => feature === 'mcp')
  const servers = useApi('/api/mcp/servers', {}, { enabled: mcp?.state === 'ready', refreshMs: REFRESH_MS })
  if (mcp && mcp.state !== 'ready')
    return (
      <p class="empty">
        {mcp.build ? (
          <>
            MCP is not in this build: <code>{mcp.build}</code>
          </>
        ) : (
          NO_SERVER
        )}
      </p>
    )
  return (
    <Loaded query={servers}>
      {({ servers: rows }) => (
        <>
          <Table
            label="MCP servers"
            rows={rows}
            keyOf={({ name }) => name}
            empty={NO_SERVER}
            columns={[
              {
                name: 'Server',
                heads: true,
                show: ({ name }) => (
                  <a href={`#/configuration?section=mcp.servers.${name}`}>
                    <Name value={name} />
                  </a>
                ),
              },
              { name: 'State', show: ({ state }) => <Badge state={state === 'off' ? 'turned off' : state} /> },
              { name: 'Reached by', show: ({ transport, source }) => <Line value={`${transport}: ${source}`} /> },
              { name: 'Tools', number: true, show: ({ tools }) => tools.length },
              {
                name: 'Offers too',
                show: ({ resources, prompts }) => [resources && 'resources', prompts && 'prompts'].filter(Boolean).join(', '),
              },
              { name: 'Problem', show: ({ failure, problems }) => <Line value={[failure ?? [], problems].flat().join('; ')} /> },
              {
                name: 'Actions',
                quietName: true,
                show: ({ name, state }) =>
                  state !== 'off' && (
                    <Act class="small" work={() => testServer(name)}>
                      Ask it anew
                    </Act>
                  ),
              },
            ]}
          />
          {rows.map((server) => (
            <ChangedTools key={server.name} server={server} />
          ))}
        </>
      )}
    </Loaded>
  )
}

async function testServer(name: string): Promise<void> {
  const server = await attempt(() => answered(api.POST('/api/mcp/servers/{name}/test', { params: { path: { name } } })))
  if (server?.failure) say(server.failure, 'bad')
  else if (server) say(`${name} answers; it has ${server.tools.length} tools.`)
  await refresh('/api/mcp', '/api/tools')
}

/** The tools whose definition is new or changed, with the values that the model would read. */
function ChangedTools({ server: { name, tools } }: { readonly server: Server }) {
  const changed = tools.filter(({ accepted }) => !accepted)
  if (changed.length === 0) return null
  return (
    <div class="body stack">
      <Note tone="warn">
        The server <Name value={name} /> has new or changed tools. Until you accept what you read here, calls of changed tools ask a person,
        and the agent has no new tools.
      </Note>
      {changed.map((tool) => (
        <article class="approval" key={tool.name}>
          <h3>
            <Name value={tool.name} /> <Badge state={tool.risk} tone={tool.risk === 'read' ? 'quiet' : 'warn'} />
          </h3>
          <div class="block mono">
            <Text value={tool.changes.join('\n')} />
          </div>
        </article>
      ))}
      <div class="row end">
        <Act
          class="primary"
          work={async () => {
            const body = { tools: changed.map(({ name: tool, hash }) => ({ name: tool, hash })) }
            await attempt(() => answered(api.POST('/api/mcp/servers/{name}/accept', { params: { path: { name } }, body })), 'Accepted.')
            await refresh('/api/mcp', '/api/tools')
          }}
        >
          Accept {changed.length === 1 ? 'this tool' : `these ${changed.length} tools`}
        </Act>
      </div>
    </div>
  )
}

type Proposal = Got<'/api/skills'>['waiting'][number]

function Skills() {
  const features = useApi('/api/features', {})
  const feature = features.data?.features.find((one) => one.feature === 'tool-skills')
  const skills = useApi('/api/skills', {}, { enabled: feature?.state === 'ready', refreshMs: REFRESH_MS })
  const [shown, setShown] = useState<string | undefined>()
  if (feature && feature.state !== 'ready')
    return (
      <Card title="Skills">
        <p class="empty">{feature.build ? <code>{feature.build}</code> : (feature.reason ?? 'Skills are turned off.')}</p>
      </Card>
    )
  return (
    <Loaded query={skills}>
      {({ folder, skills: rows, problems, waiting }) => (
        <>
          {waiting.length > 0 && (
            <Card title="Skills that wait to be accepted" padded>
              <div class="stack">
                {waiting.map((proposal) => (
                  <ProposalView key={proposal.folder} proposal={proposal} />
                ))}
              </div>
            </Card>
          )}
          <Card title="Skills">
            {problems.map(({ file, line, message, severity }) => (
              <div class="body" key={`${file}:${line}:${message}`}>
                <Note tone={severity === 'error' ? 'bad' : 'warn'}>
                  <code>
                    {file}
                    {line !== undefined && `:${line}`}
                  </code>{' '}
                  <Name value={message} />
                </Note>
              </div>
            ))}
            <Table
              label="Skills"
              rows={rows}
              keyOf={({ name }) => name}
              empty={`There are no skills in ${folder}.`}
              columns={[
                {
                  name: 'Skill',
                  heads: true,
                  show: ({ name }) => (
                    <button type="button" class="address" onClick={() => setShown(name)}>
                      <Name value={name} />
                    </button>
                  ),
                },
                { name: 'When the agent reads it', show: ({ description }) => <Line value={description} /> },
                { name: 'Needs', show: ({ compatibility }) => compatibility && <Line value={compatibility} /> },
                { name: 'License', show: ({ license }) => license && <Line value={license} /> },
              ]}
            />
          </Card>
          {shown !== undefined && <SkillDialog name={shown} onClose={() => setShown(undefined)} />}
        </>
      )}
    </Loaded>
  )
}

const Files = ({ files }: { readonly files: Proposal['files'] }) =>
  files.map(({ path, bytes: size, executable, text }) => (
    <details key={path} open={path === 'SKILL.md'}>
      <summary>
        <Name value={path} /> <span class="quiet">{bytes(size)}</span> {executable && <span class="badge warn">executable</span>}
      </summary>
      <div class="block mono">{text === null ? 'It is not a text, or too long to be shown here.' : <Text value={text} />}</div>
    </details>
  ))

/** A skill that the agent wrote is shown with every file, because accepting it lets the agent run its scripts. */
function ProposalView({ proposal: { name, folder, replaces, description, problems, hash, files } }: { readonly proposal: Proposal }) {
  return (
    <article class="approval">
      <div class="row">
        <h3 class="grow">
          <Name value={name} />
        </h3>
        <Badge state={replaces ? 'changes a skill' : 'new'} tone="warn" />
        {hash !== null && !problems.some(({ severity }) => severity === 'error') && (
          <Act
            class="primary"
            work={async () => {
              await attempt(
                () => answered(api.POST('/api/skills/waiting/{name}/accept', { params: { path: { name } }, body: { hash } })),
                'Accepted. The agent can use it from now on.',
              )
              await refresh('/api/skills')
            }}
          >
            Accept
          </Act>
        )}
      </div>
      {description !== null && <Text value={description} />}
      <p class="quiet">
        <code>{folder}</code>
      </p>
      {problems.map(({ message }) => (
        <Note key={message} tone="bad">
          <Text value={message} />
        </Note>
      ))}
      <Files files={files} />
    </article>
  )
}

function SkillDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const skill = useApi('/api/skills/{name}', { path: { name } })
  return (
    <Dialog title={name} onClose={onClose}>
      <Loaded query={skill}>
        {({ description, folder, allowed_tools, files }) => (
          <>
            <Text value={description} />
            <Facts rows={[['Folder', <code key="folder">{folder}</code>], allowed_tools !== null && ['Suggested tools', allowed_tools]]} />
            <Files files={files} />
          </>
        )}
      </Loaded>
      <div class="row end">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  )
}
