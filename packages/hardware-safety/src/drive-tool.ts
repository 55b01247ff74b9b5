/** The tool that moves the robot: it asks, the safety process decides, and the answer is what really happened. */
import type { DeviceGuard } from '@sluice/hardware'
import { signalScope } from '@sluice/kit'
import { AppError, defineTool, type Host, type Tool, type ToolContext } from '@sluice/sdk'
import { describeEnd } from './describe.ts'
import { driveInput, movementOf } from './drive-input.ts'
import type { Robot } from './robot.ts'

export interface RobotToolDeps {
  readonly host: Pick<Host, 'log' | 'service'>
  readonly guard: DeviceGuard
  readonly isThere: () => boolean
  /** Throws `unavailable` where there is none, `config_invalid` for its file. */
  readonly robot: () => Promise<Robot>
}

export const DEVICE = 'robot'

/** Whoever speaks to a robot that moves finds it standing: it may be a stop, in whatever words. */
const FOLLOWED = 'something else was said in this conversation, and waits for the end of this turn'

export const driveTool = ({ host, guard, isThere, robot }: RobotToolDeps): Tool =>
  defineTool({
    name: 'drive',
    description:
      'Moves the robot, as far as its safety layers allow, and answers when the movement has ended with what really happened. action stop halts it at once and is always allowed.',
    input: driveInput,
    risk: ({ action }) => (action === 'stop' ? 'read' : 'execute'),
    // A model that stops it may well write a speed of 0 beside that
    haltOf: (raw) => (isStop(raw) ? { action: 'stop' } : undefined),
    precheck: async () => void (await robot()),
    available: isThere,
    async run(input, context) {
      const it = await robot()
      const movement = movementOf(input, it.config)
      if (!movement) return stop(it, host, context)
      const write = { ...input, ...movement }
      const { stops } = it
      const { signal, followed } = context
      const end = await guard.use({ device: DEVICE, tool: 'drive', context, write }, async () => {
        if (it.stops !== stops) throw new AppError('conflict', 'not moved: a stop was asked for while this waited')
        if (followed?.aborted) throw new AppError('conflict', `not moved: ${FOLLOWED}`)
        using either = signalScope([signal, followed])
        return await it.move(movement, either.signal)
      })
      if (end.reason !== 'done') context.report?.({ failed: true })
      const isCut = end.reason === 'stopped' && followed?.aborted
      return describeEnd(isCut ? { ...end, why: FOLLOWED } : end, movement, it.isSimulated)
    },
  })

const isStop = (raw: unknown): boolean => {
  const { action } = (raw ?? {}) as { readonly action?: unknown }
  return typeof action === 'string' && action.trim().toLowerCase() === 'stop'
}

/** Waits for no lease and for no record. */
async function stop(robot: Robot, host: RobotToolDeps['host'], { client, turn, approvedBy }: ToolContext): Promise<string> {
  await robot.stop('a stop was asked for')
  const record = { by: approvedBy ?? `turn:${turn}`, detail: { device: DEVICE, tool: 'drive', action: 'stop', client, turn } }
  void host
    .service('audit')?.(record)
    .catch((error: unknown) => host.log.error('a stop could not be recorded', { error }))
  return robot.isSimulated ? 'the simulated robot has stopped' : 'the robot has stopped'
}
