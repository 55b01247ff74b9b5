/** USB and serial boards (§2.7 rule 4): found by themselves, under stable names, behind one line protocol. */
import { createDeviceGuard } from '@sluice/hardware'
import { defineFeature } from '@sluice/sdk'
import { checkBoards } from './check.ts'
import { peripheralsSection } from './config.ts'
import { listenToTriggers } from './listen-to-triggers.ts'
import { devicesPrompt } from './prompt.ts'
import { createRegistry } from './registry/registry.ts'
import { boardAFlash } from './tools/board-a-flash.ts'
import { boardTools } from './tools/board-tools.ts'
import { deviceTools } from './tools/device-tools.ts'
import { gpioTools } from './tools/gpio.ts'

export default defineFeature({
  id: 'hardware-boards',
  section: peripheralsSection,
  build(host, config) {
    const registry = createRegistry(host, config)
    const guard = createDeviceGuard(host, config)
    const closing = new AbortController()
    return {
      tools: [
        ...gpioTools(registry, guard),
        boardAFlash(host, registry, guard),
        ...deviceTools(host, registry, guard),
        ...boardTools(host, config, registry, guard),
      ],
      prompt: () => devicesPrompt(registry.all()),
      check: (signal) => checkBoards(registry, signal),
      async register() {
        registry.start()
        void listenToTriggers(host, registry, closing.signal)
      },
      async close() {
        closing.abort()
        await registry.close()
      },
    }
  },
})
