/** A daemon whose MCP side the conformance suite tests: it offers the fixtures of the suite that have the form of our tools. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import mcp from '@sluice/mcp'
import offline from '@sluice/provider-offline'
import { AppError, defineFeature, defineTool } from '@sluice/sdk'
import * as v from 'valibot'

const CONFIG = `
[gateway]
require_pairing = false
callable_tools = ["test_simple_text", "test_error_handling"]
[log]
level = "error"
[provider]
kind = "offline"
[security.policy]
level = "full"
[mcp.serve]
enabled = true
`

const fixture = (name: string, run: () => Promise<string>) =>
  defineTool({ name, description: `The fixture ${name}.`, input: v.object({}), risk: 'read', egress: false, untrusted: false, run })

const fixtures = defineFeature({
  id: 'x-conformance',
  build: () => ({
    tools: [
      fixture('test_simple_text', async () => 'This is a simple text response for testing.'),
      fixture('test_error_handling', async () => {
        throw new AppError('upstream', 'This tool intentionally returns an error for testing')
      }),
    ],
  }),
})

export interface ConformanceDaemon {
  /** The address of its MCP side. */
  readonly url: string
  stop(): Promise<void>
}

export async function startConformanceDaemon(): Promise<ConformanceDaemon> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-mcp-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, CONFIG, { mode: 0o600 })
  const features = [mcp, offline, fixtures]
  const daemon = await startDaemon({
    features,
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '1.0.0',
    host: '127.0.0.1',
    port: 0,
  })
  return {
    url: `${daemon.url}/mcp`,
    async stop() {
      await daemon.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
