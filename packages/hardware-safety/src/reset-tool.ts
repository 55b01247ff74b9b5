/** The tool by which a person lets the robot move again after an emergency stop. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { DEVICE, type RobotToolDeps } from './drive-tool.ts'

export const resetTool = ({ guard, isThere, robot }: RobotToolDeps): Tool =>
  defineTool({
    name: 'estop_reset',
    description: 'Lets the robot move again after its emergency stop, once that is released. A person has to agree to each call.',
    input: v.object({}),
    risk: 'execute',
    alwaysAsks: true,
    precheck: async () => void (await robot()),
    available: isThere,
    async run(_, context) {
      if (context.approvedBy === undefined) throw new AppError('forbidden', 'only a person can reset the emergency stop')
      const it = await robot()
      const use = { device: DEVICE, tool: 'estop_reset', context, write: { action: 'reset' } }
      const view = await guard.use(use, () => it.reset())
      if (view.isEstopPressed) throw new AppError('conflict', 'the emergency stop is still pressed: release it first')
      if (view.latched !== null) throw new AppError('conflict', `the robot is still stopped: ${view.latched}`)
      return 'the robot may move again'
    },
  })
