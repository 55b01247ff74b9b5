/** The library by which the tool `browser` drives an installed Chromium itself. See `docs/browser.md`. */
import { installPackage, missingPackages } from '@sluice/kit'
import { AppError, defineFeature } from '@sluice/sdk'

const LIBRARY = 'playwright-core'

export default defineFeature({
  id: 'tool-browser-native',
  build: () => ({ services: { browserLibrary: { missing: () => missingPackages([LIBRARY], import.meta.url), load } } }),
})

/** The library is not part of the bundle. */
const load = (): Promise<unknown> =>
  import('playwright-core').catch((cause: unknown) => {
    throw new AppError('unavailable', `The package ${LIBRARY} is not installed; ${installPackage(LIBRARY)}`, { cause })
  })
