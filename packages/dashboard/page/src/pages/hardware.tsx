/** The hardware: boards and who has them, the robot and its emergency stop, and what the features say about themselves. */
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { Act, BuildCommand } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Badge, Card, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Line, MonoName, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { TOOL_NAME, TOOL_PURPOSE, TOOL_STATE } from '../ui/tool-columns.tsx'
import { duration, Time } from '../ui/values.tsx'

type Hardware = Got<'/api/hardware'>
type Board = Hardware['boards'][number]
type Robot = Hardware['robots'][number]

const REFRESH_MS = 3000

export function Hardware() {
  const hardware = useApi('/api/hardware', {}, { refreshMs: REFRESH_MS })
  return (
    <Page title="Hardware" about="What the agent can read and move, who has it now, and whether it works.">
      <Loaded query={hardware}>
        {({ boards, robots }) => (
          <>
            {robots.map((robot) => (
              <RobotCard key={robot.feature} robot={robot} />
            ))}
            <Boards boards={boards} />
            <Pins boards={boards} />
          </>
        )}
      </Loaded>
      <About />
    </Page>
  )
}

const changed = (): Promise<void> => refresh('/api/hardware', '/api/sops/audit')

function RobotCard({ robot }: { readonly robot: Robot }) {
  const { simulated, state, reason, estop_pressed, touching, ways, sensors, holder } = robot
  const stop = async () => {
    if (
      !(await confirmed(
        'Stop the robot?',
        'It halts at once, and does not move again until a person resets it. The audit log records who stopped it.',
        'Stop the robot',
      ))
    )
      return
    await attempt(() => answered(api.POST('/api/hardware/stop')), 'The robot has the command to halt.')
    await changed()
  }
  const reset = async () => {
    if (!(await confirmed('Let the robot move again?', 'Look at the robot first: nobody may be in its way.', 'Reset'))) return
    await attempt(() => answered(api.POST('/api/hardware/reset')), 'The robot may move again.')
    await changed()
  }
  return (
    <Card
      title="Robot"
      actions={
        <>
          {state === 'stopped' && <Act work={reset}>Reset</Act>}
          <Act class="primary danger" work={stop} disabled={state === 'stopped'}>
            Emergency stop
          </Act>
        </>
      }
      padded
    >
      <div class="stack" aria-live="polite">
        {simulated && <Note tone="info">The robot is simulated: no real robot moves.</Note>}
        {reason !== null && (
          <Note tone="bad">
            <Text value={reason} />
          </Note>
        )}
        <Facts
          rows={[
            ['State', <Badge key="state" state={state} tone={state === 'ready' ? 'ok' : state === 'moving' ? 'info' : 'bad'} />],
            ['Emergency stop', estop_pressed ? 'pressed' : 'not pressed'],
            ['Touches', touching.length === 0 ? 'nothing' : touching.map((sensor) => <Name key={sensor} value={sensor} />)],
            ['Used by', holder ? <Holder key="holder" holder={holder} /> : 'nobody'],
            ...ways.map(
              ({ way, metres, sight }) =>
                [
                  `Free ${way}`,
                  sight === 'blind' ? 'no sensor looks there' : metres === null ? 'nothing in range' : `${metres.toFixed(2)} m`,
                ] as const,
            ),
            ...sensors.map(({ name, age_ms }) => [name, age_ms === null ? 'no reading yet' : `read ${duration(age_ms)} ago`] as const),
          ]}
        />
      </div>
    </Card>
  )
}

/** The client that has a device. A paired device is shown by its name. */
function Holder({ holder: { client, until } }: { readonly holder: NonNullable<Board['holder']> }) {
  const devices = useApi('/api/devices', {})
  const device = devices.data?.devices.find(({ id }) => client === id || client === `device:${id}`)
  return (
    <span>
      <Name value={device?.name ?? client} />{' '}
      <span class="quiet">
        {until === null ? (
          'a call runs'
        ) : (
          <>
            until <Time at={until} />
          </>
        )}
      </span>
    </span>
  )
}

const Boards = ({ boards }: { readonly boards: readonly Board[] }) => (
  <Card title="Boards and adapters">
    <Table
      label="Boards and adapters"
      rows={boards}
      keyOf={({ feature, name }) => `${feature} ${name}`}
      empty="No board is known. Plug one in, or name it in [[peripherals.boards]]."
      columns={[
        {
          name: 'Name',
          heads: true,
          show: ({ name }) => <MonoName value={name} />,
        },
        { name: 'Kind', show: ({ title }) => <Line value={title} /> },
        {
          name: 'State',
          show: ({ connected }) => <Badge state={connected ? 'connected' : 'not connected'} tone={connected ? 'ok' : 'warn'} />,
        },
        { name: 'Reached by', show: ({ transport, path }) => <Line value={path === null ? transport : `${transport}, ${path}`} /> },
        { name: 'Used by', show: ({ holder }) => holder && <Holder holder={holder} /> },
      ]}
    />
  </Card>
)

function Pins({ boards }: { readonly boards: readonly Board[] }) {
  const pins = boards.flatMap(({ name, pins: own }) => own.map((pin) => ({ board: name, ...pin })))
  return (
    <Card title="Reserved pins">
      <Table
        label="Reserved pins"
        rows={pins}
        keyOf={({ board, pin }) => `${board} ${pin}`}
        empty="No pin is reserved. A pin that a client has written stays reserved for it for a while."
        columns={[
          {
            name: 'Pin',
            heads: true,
            show: ({ pin }) => <MonoName value={pin} />,
          },
          { name: 'Board', show: ({ board }) => <Name value={board} /> },
          { name: 'Client', show: ({ client, until }) => <Holder holder={{ client, until }} /> },
        ]}
      />
    </Card>
  )
}

function About() {
  const features = useApi('/api/features', {})
  const tools = useApi('/api/tools', {})
  const doctor = useApi('/api/doctor', {})
  const ours = features.data?.features.filter(({ kind }) => kind === 'hardware') ?? []
  const names: readonly string[] = ours.map(({ feature }) => feature)
  return (
    <>
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
                {
                  name: 'Reason',
                  show: ({ reason, build }) => (
                    <>
                      {reason && <Line value={reason} />}
                      {build && <BuildCommand command={build} />}
                    </>
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
                { name: 'Check', heads: true, show: ({ check }) => <Name value={check} /> },
                { name: 'State', show: ({ status }) => <Badge state={status} /> },
                { name: 'Detail', show: ({ detail }) => <Text value={detail} /> },
                { name: 'Remedy', show: ({ fix }) => fix !== null && <Text value={fix} /> },
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
              rows={rows.filter(({ feature }) => names.includes(feature))}
              keyOf={({ name, feature }) => `${feature} ${name}`}
              empty="No tool reaches hardware."
              columns={[TOOL_NAME, TOOL_STATE, TOOL_PURPOSE]}
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}
