//! One instance type: from the member names of DescribeInstanceTypes to a line of the table.

use anyhow::{Context, bail};
use serde_json::Value;

/// The name of a type, and its line (without the newline), marked as coming from the API.
pub(crate) fn line(described: &Value) -> anyhow::Result<(String, String)> {
    let name = described["InstanceType"].as_str().context("an entry without InstanceType")?;
    let columns = columns(described, name).with_context(|| format!("reading {name}"))?;
    Ok((name.to_owned(), columns.join("\t")))
}

fn columns(described: &Value, name: &str) -> anyhow::Result<[String; 14]> {
    let network = &described["NetworkInfo"];
    let cards = network["NetworkCards"].as_array().context("no NetworkCards")?;
    let default_card = default_card(network, cards)?;
    let ipv6 = if network["Ipv6Supported"].as_bool() == Some(true) {
        number(&network["Ipv6AddressesPerInterface"], "Ipv6AddressesPerInterface")?
    } else {
        0
    };
    let efa = match network["EfaSupported"].as_bool() {
        Some(true) => number(&network["EfaInfo"]["MaximumEfaInterfaces"], "MaximumEfaInterfaces")?,
        _ => 0,
    };
    Ok([
        name.to_owned(),
        number(&default_card["MaximumNetworkInterfaces"], "MaximumNetworkInterfaces")?.to_string(),
        number(&network["Ipv4AddressesPerInterface"], "Ipv4AddressesPerInterface")?.to_string(),
        ipv6.to_string(),
        number(&described["VCpuInfo"]["DefaultVCpus"], "DefaultVCpus")?.to_string(),
        number(&described["MemoryInfo"]["SizeInMiB"], "SizeInMiB")?.to_string(),
        arch(&described["ProcessorInfo"]["SupportedArchitectures"])?.to_owned(),
        virt(described)?.to_owned(),
        cards.len().to_string(),
        number(&network["MaximumNetworkInterfaces"], "MaximumNetworkInterfaces")?.to_string(),
        efa.to_string(),
        accelerators(described)?,
        disks(&described["InstanceStorageInfo"])?,
        "-".to_owned(),
    ])
}

fn number(value: &Value, name: &str) -> anyhow::Result<u64> {
    value.as_u64().with_context(|| format!("{name} is not a whole number"))
}

fn default_card<'a>(network: &Value, cards: &'a [Value]) -> anyhow::Result<&'a Value> {
    let index = network["DefaultNetworkCardIndex"].as_u64().unwrap_or(0);
    let found = cards.iter().find(|card| card["NetworkCardIndex"].as_u64() == Some(index));
    found.with_context(|| format!("no network card with the default index {index}"))
}

fn arch(supported: &Value) -> anyhow::Result<&'static str> {
    let names: Vec<&str> =
        supported.as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    // i386 beside x86_64 is the same machine in an older mode.
    match names[..] {
        ["x86_64"] | ["i386", "x86_64"] => Ok("x"),
        ["arm64"] => Ok("a"),
        ["x86_64_mac"] | ["arm64_mac"] => Ok("m"),
        _ => bail!("unexpected SupportedArchitectures"),
    }
}

/// Bare metal and "no hypervisor" are one set; the column rests on that.
fn virt(described: &Value) -> anyhow::Result<&'static str> {
    match (described["BareMetal"].as_bool(), described["Hypervisor"].as_str()) {
        (Some(true), None) => Ok("m"),
        (Some(false), Some("nitro")) => Ok("n"),
        (Some(false), Some("xen")) => Ok("x"),
        _ => bail!("BareMetal and Hypervisor do not go together; the virt column needs a rethink"),
    }
}

fn accelerators(described: &Value) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for gpu in devices(&described["GpuInfo"]["Gpus"]) {
        parts.push(accelerator(gpu, manufacturer(gpu)?, "")?);
    }
    let neuron: Vec<&Value> = devices(&described["NeuronInfo"]["NeuronDevices"]).collect();
    for device in &neuron {
        let cores = number(&device["CoreInfo"]["Count"], "CoreInfo.Count")?;
        parts.push(accelerator(device, "t", &format!(".{cores}"))?);
    }
    // Neuron devices are listed as inference accelerators as well; once is enough.
    let inference = devices(&described["InferenceAcceleratorInfo"]["Accelerators"]);
    for device in inference.filter(|_| neuron.is_empty()) {
        parts.push(accelerator(device, manufacturer(device)?, "")?);
    }
    for fpga in devices(&described["FpgaInfo"]["Fpgas"]) {
        parts.push(accelerator(fpga, "f", "")?);
    }
    Ok(if parts.is_empty() { "-".to_owned() } else { parts.join("+") })
}

fn devices(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn manufacturer(device: &Value) -> anyhow::Result<&'static str> {
    match device["Manufacturer"].as_str().unwrap_or_default() {
        "NVIDIA" => Ok("n"),
        "AMD" => Ok("a"),
        "Habana" => Ok("h"),
        "Qualcomm" => Ok("q"),
        _ => bail!("an accelerator of an unknown manufacturer: add a kind to the table"),
    }
}

fn accelerator(device: &Value, kind: &str, cores: &str) -> anyhow::Result<String> {
    // A slice of a GPU has the count 0 and one logical GPU.
    let whole = device["Count"].as_u64().unwrap_or(0);
    let count = if whole > 0 { whole } else { number(&device["LogicalGpuCount"], "Count")? };
    let memory = number(&device["MemoryInfo"]["SizeInMiB"], "MemoryInfo.SizeInMiB")?;
    let model = model(device["Name"].as_str().context("an accelerator without a name")?);
    Ok(format!("{kind}{count}{cores}:{model}:{memory}"))
}

/// The model as one word that holds no separator of the table.
fn model(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn disks(storage: &Value) -> anyhow::Result<String> {
    let nvme = !matches!(storage["NvmeSupport"].as_str(), None | Some("unsupported"));
    let mut parts = Vec::new();
    for disk in devices(&storage["Disks"]) {
        let kind = match (disk["Type"].as_str(), nvme) {
            (Some("hdd"), _) => "h",
            (Some("ssd"), true) => "n",
            (Some("ssd"), false) => "s",
            _ => bail!("a local disk that is neither ssd nor hdd"),
        };
        let (count, size) =
            (number(&disk["Count"], "Count")?, number(&disk["SizeInGB"], "SizeInGB")?);
        parts.push(format!("{count}x{size}{kind}"));
    }
    Ok(if parts.is_empty() { "-".to_owned() } else { parts.join("+") })
}
