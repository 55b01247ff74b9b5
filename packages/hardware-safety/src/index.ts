/** A robot that is driven through layers of safety (§2.6 `[safety]`, §2.7 rule 7), in a process of their own. */
import { join } from 'node:path'
import { createDeviceGuard } from '@sluice/hardware'
import { AppError, defineFeature } from '@sluice/sdk'
import { driveTool } from './drive-tool.ts'
import { checkRobot } from './preflight.ts'
import { resetTool } from './reset-tool.ts'
import { Robot } from './robot.ts'
import { robotToml } from './robot-toml.ts'
import { senseTool } from './sense-tool.ts'

const LIMITS = { lease_secs: 30, pin_reservation_secs: 0 }

export default defineFeature({
  id: 'hardware-safety',
  build(host) {
    const file = join(host.dataDir, 'robot.toml')
    const absent = `there is no robot: ${file} is not there`
    let robot: Robot | undefined
    let reading: Promise<Robot | undefined> | undefined
    const readConfig = async () => host.service('readToml')?.(file, robotToml)
    const read = async (): Promise<Robot | undefined> => {
      const config = await readConfig()
      robot = config && new Robot(host, { config })
      return robot
    }
    const found = () => (reading ??= read())
    // Also of one whose file is still being read
    const end = async () => (await reading?.catch(() => undefined))?.close()
    const deps = {
      host,
      guard: createDeviceGuard(host, LIMITS),
      isThere: () => robot !== undefined,
      async robot() {
        const there = await found()
        if (!there) throw new AppError('unavailable', absent)
        return there
      },
    }
    return {
      tools: [driveTool(deps), senseTool(deps), resetTool(deps)],
      prompt: () => (robot?.isSimulated ? 'The robot is SIMULATED: drive and sense reach no real robot.' : ''),
      async check() {
        const config = await readConfig()
        return config ? checkRobot(config) : [{ status: 'ok', detail: absent }]
      },
      async register() {
        void (await found())?.startSoon()
      },
      retire: end,
      close: end,
    }
  },
})
