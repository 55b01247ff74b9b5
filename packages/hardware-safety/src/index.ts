/** A robot that is driven through layers of safety (§2.6 `[safety]`, §2.7 rule 7), in a process of their own. */
import { join } from 'node:path'
import { createDeviceGuard } from '@sluice/hardware'
import { AppError, defineFeature } from '@sluice/sdk'
import { driveTool } from './drive-tool.ts'
import { checkRobot, warningsOf } from './preflight.ts'
import { resetTool } from './reset-tool.ts'
import { Robot } from './robot.ts'
import { robotToml } from './robot-toml.ts'
import { senseTool } from './sense-tool.ts'

const LIMITS = { lease_secs: 30, pin_reservation_secs: 0 }

export default defineFeature({
  id: 'hardware-safety',
  build(host) {
    const file = join(host.dataDir, 'robot.toml')
    let robot: Robot | undefined
    const theRobot = (): Robot => {
      if (!robot) throw new AppError('unavailable', `there is no robot: ${file} is not there`)
      return robot
    }
    const deps = { host, guard: createDeviceGuard(host, LIMITS), robot: () => robot, theRobot }
    const readConfig = async () => host.service('readToml')?.(file, robotToml)
    return {
      tools: [driveTool(deps), senseTool(deps), resetTool(deps)],
      prompt: () => (robot?.isSimulated ? 'The robot is SIMULATED: drive and sense reach no real robot.' : ''),
      async check() {
        const config = await readConfig()
        return config ? checkRobot(config) : [{ status: 'ok', detail: `there is no robot: ${file} is not there` }]
      },
      async register(signal) {
        const config = await readConfig()
        if (!config || signal.aborted) return
        for (const { detail, fix } of warningsOf(config)) host.log.warn(detail, { fix })
        robot = new Robot(host, { config })
        void robot.startSoon()
      },
      close: async () => robot?.close(),
    }
  },
})
