/** Runs before every test file: fast-check draws from the seed of the run, as `seededRandom` of the test kit does. */
import fc from 'fast-check'

fc.configureGlobal({ seed: Number(process.env.SLUICE_TEST_SEED) })
