/** The tool `spi_transfer`. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { type AdapterSettings, DEFAULTS, SPI_MODE, SPI_SPEED } from '../config.ts'
import { hexList } from '../hex.ts'
import { auditedBytes, byte, deviceKey, requirePart, type ToolKit, usePart } from './tool-kit.ts'

const BYTES_MAX = 4096

export const spiTransfer = (kit: ToolKit, settings: AdapterSettings): Tool =>
  defineTool({
    name: 'spi_transfer',
    description: 'Sends bytes over SPI under one chip select and returns as many bytes as were sent, received at the same time.',
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      device: deviceKey,
      bytes: v.pipe(v.array(byte), v.minLength(1), v.maxLength(BYTES_MAX), v.description('The bytes as numbers from 0 to 255')),
      mode: v.optional(v.pipe(SPI_MODE, v.description('Clock polarity and phase; default: the configured mode, else 0'))),
      speed_hz: v.optional(v.pipe(SPI_SPEED, v.description('The fastest clock to use; default: the configured speed'))),
    }),
    precheck: requirePart(kit, 'spi'),
    available: () => kit.adapters.present().length > 0,
    async run({ device, bytes, mode, speed_hz }, context) {
      const spiSettings = { mode: mode ?? settings.spi_mode ?? DEFAULTS.spiMode, speedHz: speed_hz ?? settings.spi_speed_hz }
      const { result, notes } = await usePart(kit, 'spi', { device, tool: 'spi_transfer', context, write: auditedBytes(bytes) }, (spi) =>
        spi.transfer(Uint8Array.from(bytes), spiSettings),
      )
      context.report?.({ data: JSON.stringify(Array.from(result)) })
      return `SPI transfer complete. Received: ${hexList(result)}${notes}`
    },
  })
