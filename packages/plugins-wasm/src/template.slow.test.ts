import { execFileSync } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolConformance, toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { pluginsSection } from './config.ts'
import { PluginInstaller } from './install.ts'
import { parseManifest } from './manifest.ts'
import { PluginFolder } from './plugin-folder.ts'
import { PluginThreads } from './plugin-threads.ts'
import { pluginTool } from './plugin-tool.ts'
import { compileTemplate, TEMPLATE } from './testing/compile.ts'
import { manifestFor, newFolder } from './testing/new-plugin.ts'

const module = await compileTemplate()
const { name, version, description } = JSON.parse(await readFile(join(TEMPLATE, 'manifest.json'), 'utf8'))
const limits = v.parse(pluginsSection.schema, {}).limits
const manifest = parseManifest(Buffer.from(JSON.stringify(manifestFor(module, { name, version, description }))))

toolConformance({
  feature: defineFeature({
    id: 'x-template',
    build(host) {
      const threads = new PluginThreads(host.clock, limits)
      return {
        tools: [pluginTool({ manifest, hosts: [], load: async () => module }, threads, host.publicFetch)],
        close: () => threads.close(),
      }
    },
  }),
  examples: [{ tool: 'rot13', input: { input: 'Hello' } }],
})

test('the template can be built, signed, installed and called', async () => {
  const root = await newFolder()
  try {
    const project = join(root, 'project')
    await cp(TEMPLATE, project, { recursive: true })
    await mkdir(join(project, 'dist'), { recursive: true })
    await writeFile(join(project, 'dist/plugin.wasm'), module)
    const output = execFileSync(process.execPath, [join(project, 'pack.mjs'), '--sign'], { encoding: 'utf8' })
    const key = /signed by ([0-9a-f]{64})/.exec(output)?.[1]
    const security = { signature_mode: 'required', trusted_publisher_keys: [key] }
    const config = v.parse(pluginsSection.schema, { plugins_dir: join(root, 'plugins'), security })
    const host = testHost()
    const folder = PluginFolder.of(host.dataDir, config)
    const installer = new PluginInstaller(host.publicFetch, config, folder)
    expect(await installer.install(join(project, 'dist'), project, new AbortController().signal)).toMatchObject({ trust: 'trusted' })
    const threads = new PluginThreads(host.clock, config.limits)
    const tool = pluginTool({ manifest, hosts: [], load: async () => (await folder.read(name)).module }, threads, host.publicFetch)
    expect(await tool.run({ input: 'Hello, Wörld! 🙂 zZ' }, toolContext())).toBe('Uryyb, Jöeyq! 🙂 mM')
    await threads.close()
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})
