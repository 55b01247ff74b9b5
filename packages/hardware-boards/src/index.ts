/** Feature `hardware`: finds USB and serial boards, names them, and gives tools access to them. See docs/contract.md#hardware. */
import { createDeviceGuard, type DeviceGuard } from '@sluice/hardware'
import { defineFeature, type Feature, type Host } from '@sluice/sdk'
import { hardwareCommands } from './commands/commands.ts'
import { peripheralsSection } from './config.ts'
import { type Devices, devicesPrompt, shownBoards } from './devices.ts'
import type { Mounts } from './flash/boot-volume.ts'
import { missingSerial } from './native.ts'
import type { Machine } from './registry/machine.ts'
import { Registry } from './registry/registry.ts'
import { thisMachine } from './registry/this-machine.ts'
import { listenToTriggers } from './signals.ts'
import { boardAFlash } from './tools/board-a-flash.ts'
import { boardTools } from './tools/board-tools.ts'
import { deviceTools } from './tools/device-tools.ts'
import { gpioTools } from './tools/gpio.ts'

/** Returns the feature. Tests replace parts of this machine. */
export const boardsFeature = (machine: Partial<Machine> = {}, mounts?: Mounts): Feature =>
  defineFeature({
    id: 'hardware-boards',
    section: peripheralsSection,
    build(host, config) {
      const registry = new Registry(host, config, machine)
      const guard = withNativeGuard(host, registry, createDeviceGuard(host, config))
      const closing = new AbortController()
      const ofBoards = [...gpioTools(registry, guard), boardAFlash(host, registry, guard, mounts), ...deviceTools(host, registry, guard)]
      // The model is offered no tool for a board where none was ever found.
      const available = () => registry.all().length > 0
      return {
        tools: [...ofBoards.map((tool) => ({ ...tool, available })), ...boardTools(host, config, registry, guard)],
        commands: hardwareCommands({ host, config, devices: registry, machine: { ...thisMachine(host), ...machine }, mounts }),
        missingRequirement: missingSerial,
        prompt: () => devicesPrompt(registry.all()),
        hardware: { boards: async () => shownBoards(registry.all(), await guard.held()) },
        async check(signal) {
          const { checkBoards } = await import('./on-demand.ts')
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

/** Uses the guard of the native GPIO service for the pins of this machine, because other features reach these pins too. */
export const withNativeGuard = (host: Host, devices: Devices, own: DeviceGuard): DeviceGuard => ({
  use(use, work) {
    const isNative = devices.all().some(({ alias, transport }) => alias === use.device && transport === 'native')
    const { device: _, ...pins } = use
    return (isNative && host.service('nativeGpio')?.use(pins, work)) || own.use(use, work)
  },
  held: () => own.held(),
})

export default boardsFeature()
