/** `sluice native install`: adds the native packages that this build can use. */
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { installNative } from '../native/install-native.ts'
import { readBuild } from '../native/native-lock.ts'

/** `folder` is the folder of the build; the modules of a bundle are in it. */
export async function run({ args, env, out, json, interrupted }: CliContext, folder: string = import.meta.dirname): Promise<number> {
  const build = await readBuild(folder)
  if (!build) throw new AppError('unavailable', "The sources use the packages of the workspace, which 'pnpm install' installs.")
  const known = Object.keys(build.versions)
  const unknown = args.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const list = known.length === 0 ? 'it uses none' : `it uses ${known.join(', ')}`
    throw new AppError('invalid_request', `this build does not use the package ${unknown.join(', ')}; ${list}`)
  }
  const names = args.length > 0 ? [...new Set(args)] : known
  if (names.length === 0) {
    if (json) out.json([])
    else out.print('This build uses no native packages.')
    return 0
  }
  if (!json) out.print(`Installing ${names.map((name) => `${name} ${build.versions[name]}`).join(', ')} from the npm registry`)
  const results = await installNative({ folder, build, names, env, signal: interrupted() })
  const failed = results.filter(({ problem }) => problem !== undefined)
  if (json) out.json(results.map(({ problem, ...result }) => ({ ...result, problem: problem ?? null })))
  else {
    out.table(
      ['package', 'version', 'state'],
      results.map(({ name, version, problem }) => [name, version, problem ?? 'installed']),
    )
    if (failed.length < results.length) out.print('Restart the daemon if it is running.')
  }
  return failed.length > 0 ? 1 : 0
}
