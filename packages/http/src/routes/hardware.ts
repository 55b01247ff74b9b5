/** `/api/hardware`: the devices of all features, the clients that have them, and the emergency stop of the robot. */
import { isoTime } from '@sluice/kit'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type DeviceHolder, defineRoute, type HardwareBoard, type RobotStatus, type Route } from '@sluice/sdk'
import * as v from 'valibot'

const holderEntries = {
  client: v.pipe(v.string(), v.description('The client, such as `device:<id>`')),
  until: v.pipe(v.nullable(v.string()), v.description('When another client may have it; null while a call runs')),
}
const holderSchema = v.pipe(v.nullable(v.object(holderEntries)), v.description('The client that has it now'))

const boardSchema = v.object({
  name: v.pipe(v.string(), v.description('The name by which tools address it')),
  feature: v.string(),
  title: v.string(),
  transport: v.string(),
  path: v.nullable(v.string()),
  connected: v.boolean(),
  holder: holderSchema,
  pins: v.pipe(
    v.array(v.object({ pin: v.string(), ...holderEntries })),
    v.description('Pins that are reserved for the client that wrote them'),
  ),
})

const robotSchema = v.object({
  feature: v.string(),
  simulated: v.boolean(),
  state: v.pipe(
    v.picklist(['ready', 'moving', 'stopped', 'fault', 'off']),
    v.description('`stopped`: nothing moves until a person resets it; `off`: its safety process does not run'),
  ),
  reason: v.nullable(v.string()),
  estop_pressed: v.boolean(),
  touching: v.pipe(v.array(v.string()), v.description('The bump sensors that are pressed')),
  ways: v.array(
    v.object({
      way: v.string(),
      metres: v.pipe(v.nullable(v.number()), v.description('The free distance; null: nothing in range')),
      sight: v.pipe(v.picklist(['seen', 'unseen', 'blind']), v.description('`blind`: no sensor covers this direction')),
    }),
  ),
  sensors: v.array(v.object({ name: v.string(), age_ms: v.nullable(v.number()) })),
  holder: holderSchema,
})

export const hardwareRoutes = (runtime: Runtime, snapshot: Snapshot): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/hardware',
    summary: 'The boards, adapters and robots that features control, as last seen, and the clients that have them',
    auth: 'operator',
    answers: {
      200: { description: 'All devices', schema: v.object({ boards: v.array(boardSchema), robots: v.array(robotSchema) }) },
    },
    async handle() {
      const found = await Promise.all(
        withHardware(snapshot).map(async ({ feature, hardware }) => ({
          boards: ((await hardware.boards?.()) ?? []).map((board) => shownBoard(feature, board)),
          robots: [(await hardware.robot?.()) ?? []].flat().map((robot) => shownRobot(feature, robot)),
        })),
      )
      return { boards: found.flatMap(({ boards }) => boards), robots: found.flatMap(({ robots }) => robots) }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/hardware/stop',
    summary: 'Stop every robot at once. Nothing moves from then on until a person resets it. The audit log records who did it',
    auth: 'operator',
    answers: { 200: { description: 'The motors have the command to halt', schema: v.object({ stopped: v.literal(true) }) } },
    async handle({ by }) {
      await Promise.all(robotsOf(snapshot).map(({ stop }) => stop(by)))
      runtime.log.warn('robot stopped by an operator', { by })
      return { stopped: true }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/hardware/reset',
    summary: 'Let a stopped robot move again. The audit log records who did it',
    auth: 'operator',
    answers: {
      200: { description: 'It may move again', schema: v.object({ reset: v.literal(true) }) },
      409: { description: 'Its emergency stop is still pressed' },
    },
    async handle({ by }) {
      for (const { reset } of robotsOf(snapshot)) await reset(by)
      return { reset: true }
    },
  }),
]

const withHardware = ({ instances }: Snapshot) =>
  instances.flatMap((instance) => {
    const { hardware } = instance.parts
    return hardware && instance.state() === 'ready' ? [{ feature: instance.feature.id as string, hardware }] : []
  })

/** Throws `not_found` when no feature has a robot. */
function robotsOf(snapshot: Snapshot) {
  const robots = withHardware(snapshot).flatMap(({ hardware: { stop, reset } }) => (stop && reset ? [{ stop, reset }] : []))
  if (robots.length === 0) throw new AppError('not_found', 'There is no robot')
  return robots
}

const shownHolder = ({ client, untilMs }: DeviceHolder) => ({ client, until: isoTime(untilMs) })

const shownBoard = (feature: string, { holder, pins, ...board }: HardwareBoard) => ({
  feature,
  ...board,
  holder: holder && shownHolder(holder),
  pins: pins.map((pin) => ({ pin: pin.pin, ...shownHolder(pin) })),
})

const shownRobot = (feature: string, { estopPressed, sensors, holder, ...robot }: RobotStatus) => ({
  feature,
  ...robot,
  estop_pressed: estopPressed,
  sensors: sensors.map(({ name, ageMs }) => ({ name, age_ms: ageMs })),
  holder: holder && shownHolder(holder),
})
