/**
 * The part of spi-device that the adapter uses. The package brings its own types, but it is compiled when it is installed
 * and is missing on a machine without a C++ compiler, where the sources must type-check all the same.
 */
declare module 'spi-device' {
  interface SpiMessage {
    readonly sendBuffer: Buffer
    readonly receiveBuffer: Buffer
    readonly byteLength: number
    readonly speedHz: number
  }

  interface SpiDevice {
    transfer(messages: readonly SpiMessage[], done: (error: Error | null | undefined) => void): void
    close(done: (error: Error | null | undefined) => void): void
  }

  interface SpiModule {
    open(bus: number, device: number, options: { readonly mode: 0 | 1 | 2 | 3 }, done: (error: Error | null | undefined) => void): SpiDevice
  }

  const spi: SpiModule
  export default spi
}
