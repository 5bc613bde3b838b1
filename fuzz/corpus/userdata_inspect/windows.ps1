<powershell>
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
Install-WindowsFeature -Name NFS-Client
& $EKSBootstrapScriptFile -EKSClusterName 'win' -APIServerEndpoint 'https://abc.gr7.us-west-2.eks.amazonaws.com' -Base64ClusterCA 'LS0tLS1CRUdJTg==' -ServiceCIDR '10.100.0.0/16' -DNSClusterIP '10.100.0.10' -KubeletExtraArgs '--node-labels=team=web --register-with-taints=os=windows:NoSchedule --max-pods=20' 3>&1 4>&1 5>&1 6>&1
Write-Host done
</powershell>
<persist>true</persist>
