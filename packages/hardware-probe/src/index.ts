/** Live chips over their debug port, by a GDB server or OpenOCD: identity, memory map, memory (§2.7 rule 6). */
import { createDeviceGuard } from '@sluice/hardware'
import { defineFeature } from '@sluice/sdk'
import { checkProbe } from './check.ts'
import { peripheralsSection } from './config.ts'
import { infoCommand } from './info-command.ts'
import { liveBoardNamed } from './live-boards.ts'
import { memoryRead } from './memory-read.ts'
import { createProbe } from './probe.ts'

export default defineFeature({
  id: 'hardware-probe',
  section: peripheralsSection,
  build(host, config) {
    const probe = createProbe(host, config.probe)
    const boards = config.boards.map(({ board }) => board)
    return {
      tools: [memoryRead({ probe, guard: createDeviceGuard(host, config), boards })],
      commands: [infoCommand(probe, boards)],
      services: { chipProbe: { info: async (board, signal) => probe.info(liveBoardNamed(board), signal) } },
      check: (signal) => checkProbe(probe, config.probe, boards, signal),
    }
  },
})
