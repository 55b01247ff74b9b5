/** Reads live chips through their debug port, with a GDB server or OpenOCD: identity, memory map and memory. See docs/probe.md. */
import { createDeviceGuard } from '@sluice/hardware'
import { defineFeature } from '@sluice/sdk'
import { checkProbe } from './check-probe.ts'
import { peripheralsSection } from './config.ts'
import { infoCommand } from './info-command.ts'
import { liveBoardNamed } from './live-boards.ts'
import { memoryRead } from './memory-read.ts'
import { Probe } from './probe.ts'

export default defineFeature({
  id: 'hardware-probe',
  section: peripheralsSection,
  build(host, config) {
    const probe = new Probe(host, config.probe)
    const boards = config.boards.map(({ board }) => board)
    return {
      tools: [memoryRead(probe, createDeviceGuard(host, config), boards)],
      commands: [infoCommand(probe, boards)],
      services: { chipProbe: { info: async (board, signal) => probe.info(liveBoardNamed(board), signal) } },
      check: (signal) => checkProbe(probe, config.probe, boards, signal),
    }
  },
})
