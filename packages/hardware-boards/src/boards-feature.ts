/** The feature, over this machine or over what a test puts in its place. */
import { createDeviceGuard } from '@sluice/hardware'
import { defineFeature, type Feature } from '@sluice/sdk'
import { hardwareCommands } from './commands/commands.ts'
import { peripheralsSection } from './config.ts'
import type { Mounts } from './flash/boot-volume.ts'
import { listenToTriggers } from './listen-to-triggers.ts'
import { lacksSerial } from './native.ts'
import { devicesPrompt } from './prompt.ts'
import { type Machine, thisMachine } from './registry/machine.ts'
import { createRegistry } from './registry/registry.ts'
import { sharedGuard } from './shared-guard.ts'
import { boardAFlash } from './tools/board-a-flash.ts'
import { boardTools } from './tools/board-tools.ts'
import { deviceTools } from './tools/device-tools.ts'
import { gpioTools } from './tools/gpio.ts'

export interface BoardsOn {
  readonly machine?: Partial<Machine>
  readonly mounts?: Mounts
}

export const boardsFeature = ({ machine, mounts }: BoardsOn = {}): Feature =>
  defineFeature({
    id: 'hardware-boards',
    section: peripheralsSection,
    build(host, config) {
      const registry = createRegistry(host, config, machine)
      const guard = sharedGuard(host, registry, createDeviceGuard(host, config))
      const closing = new AbortController()
      return {
        tools: [
          ...gpioTools(registry, guard),
          boardAFlash(host, registry, guard, mounts),
          ...deviceTools(host, registry, guard),
          ...boardTools(host, config, registry, guard),
        ],
        commands: hardwareCommands({
          host,
          config,
          devices: registry,
          machine: { ...thisMachine(host), ...machine },
          ...(mounts && { mounts }),
        }),
        lacks: lacksSerial,
        prompt: () => devicesPrompt(registry.all()),
        async check(signal) {
          const { checkBoards } = await import('./when-needed.ts')
          return checkBoards(registry, config.boards, signal)
        },
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
