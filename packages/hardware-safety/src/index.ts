/** Feature `safety`: a robot whose every movement passes safety layers in a process of their own. See docs/contract.md#safety. */
import { join } from 'node:path'
import { createDeviceGuard } from '@sluice/hardware'
import { AppError, defineFeature } from '@sluice/sdk'
import { checkRobot } from './preflight.ts'
import { Robot } from './robot.ts'
import { robotHardware } from './robot-hardware.ts'
import { robotToml } from './robot-toml.ts'
import { robotTools } from './robot-tools.ts'

const LIMITS = { lease_secs: 30, pin_reservation_secs: 0 }

export default defineFeature({
  id: 'hardware-safety',
  build(host) {
    const file = join(host.dataDir, 'robot.toml')
    let robot: Robot | undefined
    let opening: Promise<Robot | undefined> | undefined
    const readConfig = async () => host.service('readToml')?.(file, robotToml)
    const open = async (): Promise<Robot | undefined> => {
      const config = await readConfig()
      robot = config && new Robot(host, config)
      return robot
    }
    const openOnce = () => (opening ??= open())
    // Waits for a file that is still being read, so that its robot is closed too.
    const close = async () => (await opening?.catch(() => undefined))?.close()
    const guard = createDeviceGuard(host, LIMITS)
    const tools = robotTools({
      host,
      guard,
      isConfigured: () => robot !== undefined,
      async robot() {
        const opened = await openOnce()
        if (!opened) throw new AppError('unavailable', `There is no robot: create ${file} to add one`)
        return opened
      },
    })
    return {
      tools,
      hardware: robotHardware(host, guard, () => robot),
      prompt: () => (robot?.isSimulated ? 'The robot is SIMULATED: drive and sense reach no real robot.' : ''),
      async check() {
        const config = await readConfig()
        return config ? checkRobot(config) : [{ status: 'ok', detail: `there is no robot: ${file} does not exist` }]
      },
      async register() {
        void (await openOnce())?.startSoon()
      },
      drain: close,
      close,
    }
  },
})
