/** The tools of the robot. They request movements; the safety process decides, and each answer says what really happened. */
import type { DeviceGuard } from '@sluice/hardware'
import { signalScope } from '@sluice/kit'
import { AppError, defineTool, type Host, type Tool, type ToolContext } from '@sluice/sdk'
import * as v from 'valibot'
import { describeEnd, describeView } from './describe.ts'
import { driveInput, movementOf } from './drive-input.ts'
import type { Robot } from './robot.ts'

/** How the tools reach the robot. */
export interface RobotAccess {
  readonly host: Host
  readonly guard: DeviceGuard
  readonly isConfigured: () => boolean
  /** Throws `unavailable` without a robot.toml and `config_invalid` when the file is wrong. */
  readonly robot: () => Promise<Robot>
}

/** The name of the robot in leases and in the audit log. */
export const DEVICE = 'robot'

/** Any later message in the conversation stops the robot, because it may be a request to stop in any wording. */
const SUPERSEDED = 'a newer message in this conversation waits for the end of this turn'

export const robotTools = (access: RobotAccess): readonly Tool[] => [driveTool(access), senseTool(access), resetTool(access)]

const driveTool = ({ host, guard, isConfigured, robot }: RobotAccess): Tool =>
  defineTool({
    name: 'drive',
    description:
      'Moves the robot as far as its safety layers allow, and answers at the end of the movement with what really happened. action stop halts it at once and is always allowed.',
    input: driveInput,
    risk: ({ action }) => (action === 'stop' ? 'read' : 'execute'),
    decider: 'asker',
    egress: false,
    untrusted: false,
    // A model that stops the robot may well add other fields, such as a speed of 0, that the schema would refuse.
    haltOf: (raw) => (isStop(raw) ? { action: 'stop' } : undefined),
    precheck: async () => void (await robot()),
    available: isConfigured,
    async run(input, context) {
      const it = await robot()
      const movement = movementOf(input, it.config)
      if (!movement) return stop(it, host, context)
      const write = { ...input, ...movement }
      const { stops } = it
      const { signal, superseded } = context
      const end = await guard.use({ device: DEVICE, tool: 'drive', context, write }, async () => {
        if (it.stops !== stops) throw new AppError('conflict', 'Not moved: a stop was requested while the movement waited')
        if (superseded?.aborted) throw new AppError('conflict', `Not moved: ${SUPERSEDED}`)
        using either = signalScope([signal, superseded])
        return await it.move(movement, either.signal)
      })
      if (end.reason !== 'done') context.report?.({ failed: true })
      const isSuperseded = end.reason === 'stopped' && superseded?.aborted
      return describeEnd(isSuperseded ? { ...end, why: SUPERSEDED } : end, movement, it.isSimulated)
    },
  })

const isStop = (raw: unknown): boolean => {
  const { action } = (raw ?? {}) as { readonly action?: unknown }
  return typeof action === 'string' && action.trim().toLowerCase() === 'stop'
}

/** Stops the robot without waiting for its lease or for the audit log. */
async function stop(robot: Robot, host: Host, { client, turn, approvedBy }: ToolContext): Promise<string> {
  await robot.stop('a stop was requested')
  const record = { by: approvedBy ?? `turn:${turn}`, detail: { device: DEVICE, tool: 'drive', action: 'stop', client, turn } }
  void host
    .service('audit')?.(record)
    .catch((error: unknown) => host.log.error('robot stop not recorded in the audit log', { error }))
  return robot.isSimulated ? 'the simulated robot has stopped' : 'the robot has stopped'
}

const senseTool = ({ isConfigured, robot }: RobotAccess): Tool =>
  defineTool({
    name: 'sense',
    description: "Reads the robot's sensors now: the free distance ahead, left, back and right, the bump sensors and the emergency stop.",
    input: v.object({}),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available: isConfigured,
    async run() {
      const it = await robot()
      return describeView(await it.look(), it.isSimulated)
    },
  })

const resetTool = ({ guard, isConfigured, robot }: RobotAccess): Tool =>
  defineTool({
    name: 'estop_reset',
    description: 'Lets the robot move again after its emergency stop was released. A person has to approve each call.',
    input: v.object({}),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    alwaysAsks: true,
    precheck: async () => void (await robot()),
    available: isConfigured,
    async run(_, context) {
      if (context.approvedBy === undefined) throw new AppError('forbidden', 'Only a person can reset the emergency stop')
      const it = await robot()
      const use = { device: DEVICE, tool: 'estop_reset', context, write: { action: 'reset' } }
      const view = await guard.use(use, () => it.reset())
      if (view.isEstopPressed) throw new AppError('conflict', 'The emergency stop is still pressed: release it first')
      if (view.latched !== null) throw new AppError('conflict', `The robot is still stopped: ${view.latched}`)
      return 'the robot may move again'
    },
  })
