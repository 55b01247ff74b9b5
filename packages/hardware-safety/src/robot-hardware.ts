/** The robot as operators see it, and its emergency stop for them. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, type Hardware, type Host, type RobotStatus } from '@sluice/sdk'
import type { View } from './kernel/messages.ts'
import type { Robot } from './robot.ts'
import { DEVICE } from './robot-tools.ts'

export function robotHardware(host: Host, guard: DeviceGuard, robotOf: () => Robot | undefined): Hardware {
  const opened = (): Robot => {
    const robot = robotOf()
    if (!robot) throw new AppError('unavailable', 'There is no robot')
    return robot
  }
  const record = async (by: string, action: string): Promise<void> => {
    await host.service('audit')?.({ by, detail: { device: DEVICE, action } })
  }
  return {
    async robot() {
      const robot = robotOf()
      if (!robot) return undefined
      const { view, latched } = await robot.peek()
      const { holders } = await guard.held()
      return { simulated: robot.isSimulated, ...shownView(view, latched), holder: holders.get(DEVICE) ?? null }
    },
    async stop(by) {
      await opened().emergencyStop(`an operator stopped it (${by})`)
      await record(by, 'emergency stop')
    },
    async reset(by) {
      const robot = opened()
      await record(by, 'reset')
      const view = await robot.reset()
      if (view.isEstopPressed) throw new AppError('conflict', 'The emergency stop is still pressed: release it first')
      if (view.latched !== null) throw new AppError('conflict', `The robot is still stopped: ${view.latched}`)
    },
  }
}

const OFF = 'its safety process does not run; the log has the reason'

function shownView(view: View | undefined, latched: string | null): Omit<RobotStatus, 'simulated' | 'holder'> {
  const reason = latched ?? view?.fault ?? null
  if (!view) {
    const state = latched === null ? 'off' : 'stopped'
    return { state, reason: reason ?? OFF, estopPressed: false, touching: [], ways: [], sensors: [] }
  }
  const { isEstopPressed, fault, isMoving, pressed, ways, sensors } = view
  return {
    state: latched !== null || isEstopPressed ? 'stopped' : fault !== null ? 'fault' : isMoving ? 'moving' : 'ready',
    reason,
    estopPressed: isEstopPressed,
    touching: pressed,
    ways: ways.map(({ way, distance, sight }) => ({ way, metres: Number.isFinite(distance) ? distance : null, sight })),
    sensors,
  }
}
