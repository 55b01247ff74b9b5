/** The procedures: what is loaded, what runs, what waits to be accepted, and the audit log. */
import { useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { go, placeQuery, setPlaceQuery, to, useParams } from '../data/router.ts'
import { ApprovalCard } from '../ui/approval.tsx'
import { Act, Choose, Field } from '../ui/controls.tsx'
import { confirmed, Dialog } from '../ui/dialog.tsx'
import { HistoryCard } from '../ui/history-card.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Badge, Card, Empty, Facts, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Person, useDeviceNames } from '../ui/person.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, Name, Text } from '../ui/text.tsx'
import { attempt, say } from '../ui/toast.tsx'
import { duration, Time, usd } from '../ui/values.tsx'

const ROWS = '30'
const RUN_STATES = ['waiting', 'running', 'waiting_approval', 'paused_checkpoint', 'completed', 'failed', 'cancelled', 'expired'] as const
const ENDED: readonly string[] = ['completed', 'failed', 'cancelled', 'expired']
const REPLAYABLE: readonly string[] = ['failed', 'cancelled', 'expired']
type RunState = (typeof RUN_STATES)[number]
type Run = Got<'/api/sops/runs'>['runs'][number]
type Definition = Got<'/api/sops/{name}/definition'>

export const changed = (): Promise<void> => refresh('/api/sops', '/api/approvals', '/api/overview')

export function Procedures() {
  const list = useApi('/api/sops', {})
  return (
    <Page
      title="Procedures"
      about="Steps that the agent follows in order, started by hand or by an event."
      actions={
        <a class="button primary" href={to('procedure-files')}>
          New procedure
        </a>
      }
    >
      <Proposals />
      <Problems />
      <Card title="Loaded">
        <Loaded query={list}>
          {({ sops }) => (
            <Table
              label="Loaded procedures"
              rows={sops}
              keyOf={({ name }) => name}
              empty="No procedure is loaded. Make one from a template."
              columns={[
                {
                  name: 'Name',
                  heads: true,
                  show: ({ name }) => (
                    <a href={to('procedures', name)}>
                      <Name value={name} />
                    </a>
                  ),
                },
                { name: 'Description', show: ({ description }) => <Line value={description} /> },
                { name: 'Mode', show: ({ mode }) => mode.replaceAll('_', ' ') },
                { name: 'Priority', show: ({ priority }) => priority },
                { name: 'Triggers', show: ({ triggers }) => <Line value={triggers.join(', ')} /> },
                { name: 'Steps', number: true, show: ({ steps }) => integer(steps) },
                { name: 'Active runs', number: true, show: ({ active_runs }) => integer(active_runs) },
                { name: 'Waiting runs', number: true, show: ({ waiting_runs }) => integer(waiting_runs) },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Runs />
      <Audit />
    </Page>
  )
}

function Problems() {
  const problems = useApi('/api/sops/problems', {})
  const found = problems.data?.problems ?? []
  if (found.length === 0) return null
  return (
    <Card title="Problems in the files" padded>
      <ul class="stack">
        {found.map(({ file, line, column, message, severity }) => (
          <li key={`${file}:${line}:${column}:${message}`}>
            <ProblemLine file={file} line={line} column={column} message={message} severity={severity} />{' '}
            <EditLink folder={file.replace(/[\\/]SOP\.\w+$/, '')} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

type ProblemOf = Got<'/api/sops/problems'>['problems'][number]

export const ProblemLine = ({
  file,
  line,
  column,
  message,
  severity,
}: { readonly [Key in keyof ProblemOf]: ProblemOf[Key] | undefined }) => (
  <>
    <Badge state={severity ?? 'error'} tone={severity === 'warning' ? 'warn' : 'bad'} />{' '}
    <code>
      {file}
      {line !== undefined && `:${line}`}
      {column !== undefined && `:${column}`}
    </code>{' '}
    <Name value={message ?? ''} />
  </>
)

/** A procedure that the agent wrote is shown as a whole, because accepting it lets it run. */
function Proposals() {
  const waiting = useApi('/api/sops/waiting', { query: {} })
  const rows = waiting.data?.waiting ?? []
  if (rows.length === 0) return null
  return (
    <Card title="Proposals that wait to be accepted" padded>
      <div class="stack">
        {rows.map(({ folder, hash, changed: isChanged, toml, md }) => (
          <article class="approval" key={folder}>
            <div class="row">
              <h3 class="grow">
                <Name value={folder} />
              </h3>
              <Badge state={isChanged ? 'changed' : 'new'} tone="warn" />
              <Act
                class="primary"
                work={async () => {
                  await attempt(
                    () => answered(api.POST('/api/sops/waiting/{folder}/accept', { params: { path: { folder } }, body: { hash } })),
                    'Accepted. It is loaded from now on.',
                  )
                  await changed()
                }}
              >
                Accept
              </Act>
            </div>
            {[toml, md].map(
              (text, index) =>
                text !== null && (
                  <details key={index === 0 ? 'toml' : 'md'} open>
                    <summary>{index === 0 ? 'SOP.toml' : 'SOP.md'}</summary>
                    <div class="block mono">
                      <Text value={text} />
                    </div>
                  </details>
                ),
            )}
          </article>
        ))}
      </div>
    </Card>
  )
}

export function Runs({ sop }: { readonly sop?: string }) {
  const status = RUN_STATES.find((one) => one === placeQuery().get('status'))
  const paging = usePaging<string>(`${sop}|${status}`)
  const runs = useApi('/api/sops/runs', {
    query: {
      limit: ROWS,
      ...(sop !== undefined && { sop }),
      ...(status && { status }),
      ...(paging.before !== undefined && { before: paging.before }),
    },
  })
  return (
    <Card
      title="Runs"
      actions={
        <div class="filters">
          <Choose
            label="State"
            value={status ?? ''}
            options={[['', 'all'], ...RUN_STATES]}
            onChange={(value) => setPlaceQuery({ status: value })}
          />
        </div>
      }
    >
      <Loaded query={runs}>
        {({ runs: rows, next }) => (
          <>
            <Table
              label="Runs"
              rows={rows}
              keyOf={({ run_id }) => run_id}
              empty="No run."
              columns={[
                {
                  name: 'Run',
                  heads: true,
                  show: ({ run_id }) => (
                    <a class="mono" href={to('runs', run_id)}>
                      {run_id.slice(0, 18)}
                    </a>
                  ),
                },
                { name: 'Procedure', show: (run) => <Name value={run.sop} /> },
                { name: 'State', show: (run) => <Badge state={run.status} /> },
                { name: 'Step', number: true, show: ({ step, steps }) => `${integer(step)} of ${integer(steps.length)}` },
                { name: 'Progress', quietName: true, show: (run) => <Progress run={run} /> },
                { name: 'Started', show: ({ started_at }) => <Time at={started_at} /> },
                { name: 'Reason', show: ({ reason }) => reason && <Line value={reason} /> },
              ]}
            />
            <Pager paging={paging} next={next} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

const stateOfStep = (run: Run, number: number): string => {
  const result = run.results.findLast(({ step }) => step === number)
  if (result) return result.status
  return number === run.step && ['running', 'waiting_approval', 'paused_checkpoint'].includes(run.status) ? run.status : 'later'
}

const Progress = ({ run }: { readonly run: Run }) => (
  <span class="steps" aria-hidden="true">
    {run.steps.map(({ number }) => (
      <span key={number} class={`step ${stateOfStep(run, number)}`} />
    ))}
  </span>
)

export function Procedure() {
  const { name = '' } = useParams<{ name: string }>()
  const definition = useApi('/api/sops/{name}/definition', { path: { name } })
  const [dialog, setDialog] = useState<'start' | 'simulate' | undefined>()
  return (
    <Page
      title={name}
      about={definition.data ? <Name value={definition.data.description} /> : undefined}
      actions={
        <>
          {definition.data && <EditLink folder={definition.data.folder} class="button" />}
          <button type="button" onClick={() => setDialog('simulate')}>
            Simulate
          </button>
          <button type="button" class="primary" onClick={() => setDialog('start')}>
            Start
          </button>
        </>
      }
    >
      <Loaded query={definition}>{(data) => <DefinitionView definition={data} />}</Loaded>
      <HistoryCard of="procedure" procedure={name} />
      <Runs sop={name} />
      {dialog === 'start' && <Start name={name} onClose={() => setDialog(undefined)} />}
      {dialog === 'simulate' && <Simulate name={name} onClose={() => setDialog(undefined)} />}
    </Page>
  )
}

/** Only for a folder beside the others that can be edited: a folder of the workspace may have the same name. */
function EditLink({ folder, class: look }: { readonly folder: string; readonly class?: string }) {
  const editable = useApi('/api/sops/problems', {}).data?.editable
  // The path may be of Windows.
  const at = Math.max(folder.lastIndexOf('/'), folder.lastIndexOf('\\'))
  if (!editable || folder.slice(0, at) !== editable.replace(/[\\/]$/, '')) return null
  return (
    <a class={look} href={to('procedure-files', folder.slice(at + 1))}>
      Edit
    </a>
  )
}

function DefinitionView({
  definition: { version, agent, priority, mode, cooldownSecs, maxConcurrent, maxWaiting, countWaiting, triggers, steps, folder },
}: {
  readonly definition: Definition
}) {
  return (
    <>
      <Card title="Definition" padded>
        <Facts
          rows={[
            ['Version', <Name key="version" value={version} />],
            ['Agent', <Name key="agent" value={agent} />],
            ['Mode', mode.replaceAll('_', ' ')],
            ['Priority', priority],
            ['Pause between runs', duration(cooldownSecs * 1000)],
            ['Runs at once', `${integer(maxConcurrent)}${countWaiting ? '' : ', runs that wait for a person not counted'}`],
            ['Runs that wait', `at most ${integer(maxWaiting)}`],
            [
              'Triggers',
              triggers.length === 0
                ? 'by hand'
                : triggers.map(({ text }) => (
                    <div key={text}>
                      <Name value={text} />
                    </div>
                  )),
            ],
            ['Folder', <code key="folder">{folder}</code>],
          ]}
        />
      </Card>
      <Card title="Steps">
        <ol class="timeline">
          {steps.map(({ number, title, body, kind, tools, waits }) => (
            <li key={number}>
              <div class="row">
                <h3 class="grow">
                  {number}. <Name value={title} />
                </h3>
                {kind === 'checkpoint' && <span class="badge">checkpoint</span>}
                {waits && <span class="badge warn">waits for a person: {waits}</span>}
              </div>
              {body !== '' && <Text value={body} class="quiet" />}
              {tools && <p class="quiet">Tools: {tools.join(', ') || 'none'}</p>}
            </li>
          ))}
        </ol>
      </Card>
    </>
  )
}

function Start({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [payload, setPayload] = useState('')
  const start = async () => {
    const body = payload.trim() === '' ? {} : { payload_text: payload }
    const done = await attempt(() => answered(api.POST('/api/sops/{name}/runs', { params: { path: { name } }, body })), 'Started.')
    if (!done) return
    onClose()
    await changed()
    go(`/runs/${encodeURIComponent(done.run_id)}`)
  }
  return (
    <Dialog title={`Start ${name}`} onClose={onClose}>
      <Field label="Payload" hint="The input of the first step, as text or JSON. It may be empty.">
        {(props) => (
          <textarea
            {...props}
            rows={5}
            class="mono"
            dir="auto"
            value={payload}
            onInput={({ currentTarget }) => setPayload(currentTarget.value)}
          />
        )}
      </Field>
      <div class="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <Act class="primary" work={start}>
          Start
        </Act>
      </div>
    </Dialog>
  )
}

const SOURCES = ['manual', 'webhook', 'cron', 'mqtt', 'peripheral']

interface SimulateProps {
  readonly name: string
  /** The files of a procedure that are not saved; default: the loaded procedure of the name. */
  readonly draft?: { readonly folder: string; readonly toml: string; readonly md: string }
  readonly onClose: () => void
}

export function Simulate({ name, draft, onClose }: SimulateProps) {
  const [source, setSource] = useState('manual')
  const [topic, setTopic] = useState('')
  const [payload, setPayload] = useState('{}')
  const [outcome, setOutcome] = useState<Got<'/api/sops'> | undefined | { readonly procedures: readonly Simulated[] }>()
  const [problem, setProblem] = useState<unknown>()
  const run = async () => {
    setProblem(undefined)
    try {
      let value: unknown = payload
      try {
        value = JSON.parse(payload)
      } catch {
        // A payload that is not JSON is a text.
      }
      // A procedure that is started by hand is named, and no other event.
      const event = { source, topic: source === 'manual' && topic === '' ? name : topic, payload: value }
      setOutcome(await answered(api.POST('/api/sops/simulate', { body: { ...(draft ? { draft } : { sop: name }), event } as never })))
    } catch (error) {
      setProblem(error)
    }
  }
  const procedures = outcome && 'procedures' in outcome ? outcome.procedures : []
  return (
    <Dialog title={`Simulate ${name}`} onClose={onClose}>
      <p class="quiet">Nothing runs and nothing is stored.</p>
      <div class="filters">
        <Choose label="Source" value={source} options={SOURCES} onChange={setSource} />
        <label class="grow">
          Topic or path
          <input value={topic} onInput={({ currentTarget }) => setTopic(currentTarget.value)} placeholder="/webhook" />
        </label>
      </div>
      <Field label="Payload">
        {(props) => (
          <textarea
            {...props}
            rows={4}
            class="mono"
            dir="auto"
            value={payload}
            onInput={({ currentTarget }) => setPayload(currentTarget.value)}
          />
        )}
      </Field>
      {problem !== undefined && <Problem error={problem} />}
      {procedures.map(({ sop, triggers, starts, held, steps, cost }) => (
        <div class="stack" key={sop}>
          <Note tone={starts ? 'ok' : 'warn'}>
            {starts ? 'The event starts it.' : 'The event does not start it.'} {held !== null && <Name value={held} />}
          </Note>
          <ul>
            {triggers.map(({ trigger, matches, why }) => (
              <li key={trigger}>
                <Badge state={matches ? 'matches' : 'does not match'} tone={matches ? 'ok' : 'quiet'} /> <Name value={trigger} />{' '}
                {why !== null && (
                  <span class="quiet">
                    <Name value={why} />
                  </span>
                )}
              </li>
            ))}
          </ul>
          <ol class="timeline">
            {steps.map(({ number, title, waits, by }) => (
              <li key={number}>
                {number}. <Name value={title} /> <span class="quiet">by {by}</span>{' '}
                {waits && <span class="badge warn">waits: {waits}</span>}
              </li>
            ))}
          </ol>
          <p class="quiet">
            {integer(cost.modelCalls.min)} to {integer(cost.modelCalls.max)} model calls
            {cost.usd && `, ${usd(cost.usd.min)} to ${usd(cost.usd.max)}`}
          </p>
        </div>
      ))}
      <div class="row end">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <Act class="primary" work={run}>
          Simulate
        </Act>
      </div>
    </Dialog>
  )
}

interface Simulated {
  readonly sop: string
  readonly triggers: readonly { readonly trigger: string; readonly matches: boolean; readonly why: string | null }[]
  readonly starts: boolean
  readonly held: string | null
  readonly steps: readonly { readonly number: number; readonly title: string; readonly waits: string | null; readonly by: string }[]
  readonly cost: {
    readonly modelCalls: { readonly min: number; readonly max: number }
    readonly usd: { readonly min: number; readonly max: number } | null
  }
}

export function RunPage() {
  const { id = '' } = useParams<{ id: string }>()
  const run = useApi('/api/sops/runs/{id}', { path: { id } })
  const audit = useApi('/api/sops/audit', { query: { run: id, limit: '200' } })
  const deviceName = useDeviceNames()
  const isActive = run.data !== undefined && !ENDED.includes(run.data.status)
  const replay = async () => {
    const isBegun = (run.data?.results.length ?? 0) > 0
    const text = 'The new run begins at the first step. What this one has done may be done once more.'
    if (isBegun && !(await confirmed('Start it again?', text, 'Start it again'))) return
    const body = { params: { path: { id } } }
    const done = await attempt(() => answered(api.POST('/api/sops/runs/{id}/replay', body)), 'A new run has the same event.')
    if (!done) return
    await changed()
    go(`/runs/${encodeURIComponent(done.run_id)}`)
  }
  return (
    <Page
      title={run.data ? `Run of ${run.data.sop}` : 'Run'}
      about={run.data && <a href={to('procedures', run.data.sop)}>The procedure</a>}
      actions={
        run.data && REPLAYABLE.includes(run.data.status) ? (
          <Act class="primary" work={replay}>
            Start it again
          </Act>
        ) : (
          isActive && (
            <Act
              class="danger"
              work={async () => {
                if (!(await confirmed('Cancel this run?', 'What it has done stays; its remaining steps do not run.', 'Cancel the run')))
                  return
                await attempt(() => answered(api.POST('/api/sops/runs/{id}/cancel', { params: { path: { id } }, body: {} })), 'Cancelled.')
                await changed()
              }}
            >
              Cancel the run
            </Act>
          )
        )
      }
    >
      <Loaded query={run}>
        {(data) => (
          <>
            <Waits run={data} />
            <div class="grid">
              <Card title="Run" padded>
                <Facts
                  rows={[
                    ['State', <Badge key="state" state={data.status} />],
                    data.reason !== null && ['Reason', <Text key="reason" value={deviceName(data.reason)} />],
                    [data.status === 'waiting' ? 'Waits since' : 'Started', <Time key="start" at={data.started_at} />],
                    ['Ended', <Time key="end" at={data.ended_at} />],
                    ['Event', <Name key="event" value={`${data.event.source} ${data.event.topic}`} />],
                    ['By', <Person key="by" by={data.event.by} />],
                    [
                      'Turns',
                      <a key="turns" href={`#/turns?${new URLSearchParams({ session: `sop:${data.run_id}` })}`}>
                        The turns of this run
                      </a>,
                    ],
                    ['Id', <code key="id">{data.run_id}</code>],
                  ]}
                />
              </Card>
              <Card title="Payload" padded>
                {data.event.payload === null ? (
                  <Empty>None.</Empty>
                ) : (
                  <div class="block mono">
                    <Text value={data.event.payload} />
                  </div>
                )}
              </Card>
            </div>
            <Card title="Timeline">
              <ol class="timeline">
                {data.steps.map(({ number, title, kind }) => {
                  const results = data.results.filter(({ step }) => step === number)
                  return (
                    <li key={number} class={stateOfStep(data, number)}>
                      <div class="row">
                        <h3 class="grow">
                          {number}. <Name value={title} />
                        </h3>
                        {kind === 'checkpoint' && <span class="badge">checkpoint</span>}
                        <Badge state={stateOfStep(data, number)} />
                      </div>
                      {results.map(({ output, started_at, ended_at, status }, index) => (
                        <details key={started_at} open={index === results.length - 1}>
                          <summary class="quiet">
                            {status}, <Time at={ended_at} />, after {duration(Date.parse(ended_at) - Date.parse(started_at))}
                          </summary>
                          <div class="block">
                            <Text value={kind === 'checkpoint' ? deviceName(output) : output} />
                          </div>
                        </details>
                      ))}
                    </li>
                  )
                })}
              </ol>
            </Card>
          </>
        )}
      </Loaded>
      <Card title="Audit log of this run">
        <Loaded query={audit}>{({ records }) => <Records records={records} />}</Loaded>
      </Card>
    </Page>
  )
}

/** The approval that a run waits for, to decide it here. */
function Waits({ run }: { readonly run: Run }) {
  const pending = useApi('/api/approvals', { query: { state: 'pending', limit: '100' } })
  const own = pending.data?.approvals.filter(({ run_id }) => run_id === run.run_id) ?? []
  if (own.length === 0) return null
  return (
    <Card title="Waits for a person" padded>
      {own.map((approval) => (
        <ApprovalCard key={approval.step_id} approval={approval} />
      ))}
    </Card>
  )
}

function Records({ records }: { readonly records: Got<'/api/sops/audit'>['records'] }) {
  const deviceName = useDeviceNames()
  return (
    <Table
      label="Audit records"
      rows={records}
      keyOf={({ number }) => number}
      empty="No record."
      columns={[
        { name: 'Number', heads: true, number: true, show: ({ number }) => number },
        { name: 'Time', show: ({ at }) => <Time at={at} /> },
        { name: 'What', show: ({ kind }) => kind.replaceAll('_', ' ') },
        { name: 'Procedure', show: ({ sop }) => <Line value={sop} /> },
        { name: 'Step', number: true, show: ({ step }) => step ?? '' },
        {
          name: 'By',
          show: ({ by }) => (
            <span title={by}>
              <Line value={deviceName(by)} class="short" />
            </span>
          ),
        },
        { name: 'Reason', show: ({ reason }) => reason && <Line value={deviceName(reason)} /> },
      ]}
    />
  )
}

function Audit() {
  const paging = usePaging<number>('audit')
  const audit = useApi('/api/sops/audit', { query: { limit: ROWS, ...(paging.before !== undefined && { after: String(paging.before) }) } })
  return (
    <Card
      title="Audit log"
      actions={
        <Act
          class="small"
          work={async () => {
            const verified = await attempt(() => answered(api.GET('/api/sops/audit/verify')))
            if (!verified) return
            if (verified.ok) say(`The audit log is intact: ${integer(verified.records)} records.`)
            else say(`The audit log was changed: record ${verified.broken?.number}: ${verified.broken?.why}`, 'bad')
          }}
        >
          Verify the whole log
        </Act>
      }
    >
      <Loaded query={audit}>
        {({ records, next }) => (
          <>
            <Records records={records} />
            {(next !== null || paging.number > 1) && (
              <nav class="pager" aria-label="Pages of the audit log">
                <span class="quiet grow">Page {paging.number}, oldest first</span>
                <button type="button" class="small" disabled={paging.number === 1} onClick={paging.newer}>
                  Earlier
                </button>
                <button type="button" class="small" disabled={next === null} onClick={() => next !== null && paging.older(next)}>
                  Later
                </button>
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

export type { RunState }
