/** The tool that asks the robot's sensors. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { describeView } from './describe.ts'
import type { RobotToolDeps } from './drive-tool.ts'

export const senseTool = ({ isThere, robot }: RobotToolDeps): Tool =>
  defineTool({
    name: 'sense',
    description: "Reads the robot's sensors now: how far the way is free ahead, left, back and right, what touches it, its emergency stop.",
    input: v.object({}),
    risk: 'read',
    available: isThere,
    async run() {
      const it = await robot()
      return describeView(await it.look(), it.isSimulated)
    },
  })
