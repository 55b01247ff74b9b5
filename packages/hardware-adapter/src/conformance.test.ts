import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toolConformance } from '@sluice/testkit/tool'
import { afterAll } from 'vitest'
import feature from './index.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'sluice-adapter-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

toolConformance({
  feature,
  config: { adapter: { transport: 'sim' } },
  host: () => ({
    dataDir,
    services: { audit: async () => {} },
    publicFetch: async () => new Response('%PDF-1.4 a page'),
  }),
  examples: [
    { tool: 'i2c_scan', input: {} },
    { tool: 'i2c_read', input: { addr: 0x48, register: 0, len: 2 } },
    { tool: 'i2c_write', input: { addr: 0x50, bytes: [0, 1, 2] } },
    { tool: 'spi_transfer', input: { bytes: [0x9f, 0, 0, 0] } },
    { tool: 'gpio_adapter', input: { action: 'set', direction: 1, value: 1 } },
    { tool: 'datasheet', input: { action: 'download', device_name: 'BME280', url: 'https://example.com/bme280.pdf' } },
    { tool: 'datasheet', input: { action: 'list' } },
  ],
})
